"""Files of models that are damaged, hostile or of another time: an error, never a wrong answer.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import errno
import itertools
import os
import pickle
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

import kreinlearn
from kreinlearn import ModelFormatError
from kreinlearn.persist.files import versions
from tests.bounds import least_cpu_seconds
from tests.reliability import damage
from tests.systems import POSIX, posix_only, small_files
from tests.unit.persist.cases import METHODS

FILES = 5000
LONGEST = 100  # times the CPU seconds of a sound file, that any of them may take
MOST = 2**20  # bytes beside the file


def strings() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("abc"), size=rng.integers(1, 6))) for _ in range(18)]
    y = np.array(["a", "b", "c"])[np.arange(18) % 3]
    model = kreinlearn.KreinRidgeClassifier(
        "levenshtein", similarity="local3", landmarks=9, probability=True,
        random_state=0,
    )  # fmt: skip
    return model.fit(X, y), X


def vectors() -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(12, 2))
    return kreinlearn.KreinNystroem("delta_gauss", landmarks=5, random_state=0).fit(X), X


def given() -> tuple[Any, Any]:
    X = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    y = np.sin(np.arange(12))
    model = kreinlearn.KreinRidge("precomputed_dissimilarity", similarity="squared", random_state=0)
    return model.partial_fit(X, y), X


def machine() -> tuple[Any, Any]:
    X = [set(word) for word in ("ab", "abc", "bcd", "de", "ef", "efg", "a", "g")]
    return kreinlearn.SpectrumSVC("jaccard_sets", C=1.0).fit(X, np.arange(8) % 2), X


MODELS = {"strings": strings, "vectors": vectors, "given": given, "machine": machine}


def answers(model: Any, X: Any) -> list[bytes]:
    found = [getattr(model, name)(X) for name in METHODS if hasattr(model, name)]
    return [np.asarray(one).tobytes() for one in found]


def cases(text: bytes, rng: np.random.Generator) -> Any:
    """All containers, some of all lies, and then accidents without end."""
    lies = some(list(damage.lies(text, rng)), 300, rng)
    return itertools.chain(
        damage.other_containers(text), lies, sealed(text, 300, rng), damage.accidents(text, rng)
    )


def sealed(text: bytes, n: int, rng: np.random.Generator) -> Iterator[damage.Case]:
    for group in (damage.other_arrays(text), damage.other_headers(text)):
        for what, make in some(list(group), n, rng):
            yield what, make()


def some(items: list[Any], n: int, rng: np.random.Generator) -> list[Any]:
    return [items[i] for i in rng.permutation(len(items))[:n]]


def another_model(what: str) -> bool:
    """A landmark of other content, or classes of other names, sealed anew, are no damage.

    They are another sound model.
    """
    landmarks = what.startswith("columns.objects") and (" one " in what or " all " in what)
    return landmarks or "('columns', 'objects'" in what or "state.classes_" in what


@pytest.mark.parametrize("name", MODELS)
def test_damaged_files_are_refused_or_harmless(name: str, tmp_path: Path) -> None:
    model, X = MODELS[name]()
    path = tmp_path / "m.krein"
    model.save(path)
    text, right = path.read_bytes(), answers(model, X)
    assert answers(kreinlearn.load(path), X) == right
    sound = least_cpu_seconds(lambda: answers(kreinlearn.load(path), X))
    rng, seen, wrong = np.random.default_rng(1), Counter[str](), []
    for what, damaged in itertools.islice(cases(text, rng), FILES // len(MODELS)):
        path.write_bytes(damaged)
        begun = time.process_time()
        try:
            same = answers(kreinlearn.load(path), X) == right
            seen["harmless" if same else "wrong"] += 1
            if not same and not another_model(what):
                wrong.append((what, "other answers"))
        except ModelFormatError:
            seen["refused"] += 1
        except Exception as error:  # a small memory_budget is a sound one, and says so
            if not ("memory_budget" in what and isinstance(error, MemoryError)):
                wrong.append((what, repr(error)[:100]))
        assert time.process_time() - begun < LONGEST * sound, what
    assert wrong == []
    assert seen["refused"] > 0.8 * seen.total()  # what no prediction uses is taken as it is


def test_memory_is_bounded_by_the_file(tmp_path: Path) -> None:
    """Sizes that lie, bombs and endless headers take no memory that is not in the file."""
    model, _ = vectors()
    path = tmp_path / "m.krein"
    model.save(path)
    text, rng = path.read_bytes(), np.random.default_rng(2)
    lies = some(list(damage.lies(text, rng)), 60, rng)
    tracemalloc.start()
    for what, damaged in itertools.chain(
        damage.other_containers(text), lies, sealed(text, 60, rng)
    ):
        path.write_bytes(damaged)
        del damaged
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        with suppress(ModelFormatError):
            kreinlearn.load(path)
        _, peak = tracemalloc.get_traced_memory()
        assert peak - before < MOST, what
    tracemalloc.stop()


# Rows of the list of bad inputs


def saved(path: Path, kernel: Any = "gaussian") -> Any:
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = kreinlearn.KreinRidge(kernel, random_state=0).fit(X, np.sin(X[:, 0]))
    model.save(path)
    return model


def resealed(path: Path, **changed: Any) -> None:
    header, arrays = damage.parts_of(path.read_bytes())
    path.write_bytes(damage.sealed({**header, **changed}, arrays))


def test_bad_input_34_pickle_of_a_model_with_a_lambda() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = kreinlearn.KreinRidge(lambda A, B: A @ B.T).fit(X, X[:, 0])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(model)


def test_bad_input_35_an_unregistered_callable_at_save(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = kreinlearn.KreinRidge(lambda A, B: A @ B.T).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"register\(name, factory\).*external_kernel=True"):
        model.save(tmp_path / "m.krein")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("limit", marks=posix_only("limits on the size of files")),
        "fsync",
        "interrupt",
    ],
)
def test_bad_input_63_a_full_disk_while_saving(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.krein"
    model = saved(path)
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    if fault == "limit":
        with small_files(2000), pytest.raises(OSError, match=r"too large|No space") as caught:
            model.save(path)
        assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    else:
        monkeypatch.setattr(os, "fsync", full if fault == "fsync" else interrupted)
        with pytest.raises(OSError if fault == "fsync" else KeyboardInterrupt):
            model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_bad_input_70_a_truncated_or_flipped_file(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    saved(path)
    text = path.read_bytes()
    for damaged in (text[:-1], text[: len(text) // 2], text[:10], b"", text.replace(b"a", b"b", 1)):
        path.write_bytes(damaged)
        with pytest.raises(ModelFormatError, match=r"m\.krein' cannot be loaded: "):
            kreinlearn.load(path)
    assert issubclass(ModelFormatError, ValueError)


def test_every_byte_of_a_file_that_is_flipped_is_found(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    X = np.arange(6.0)[:, None]
    kreinlearn.KreinRidge("gaussian", lambda_plus=1, lambda_minus=1).fit(X, X[:, 0]).save(path)
    text = path.read_bytes()
    for at in range(len(text)):
        path.write_bytes(text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :])
        with pytest.raises(ModelFormatError):
            kreinlearn.load(path)


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("evil",)


def test_bad_input_71_a_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.krein"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Evil(), protocol))
        wanted = "pickle" if protocol > 1 else "does not begin as a model file"
        with pytest.raises(ModelFormatError, match=wanted):
            kreinlearn.load(path)
    saved(path)
    header, arrays = damage.parts_of(path.read_bytes())
    evil = pickle.dumps(np.array([Evil()], dtype=object))
    for name, node in damage.array_nodes(header):
        before = node["of"]
        node["of"] = ["|O", [1], "C"]
        path.write_bytes(damage.sealed(header, {**arrays, name: evil}))
        with pytest.raises(ModelFormatError, match=r"of the type '\|O', which is not allowed"):
            kreinlearn.load(path)
        node["of"] = before
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("shape", [[10**12], [10**7, 10**6, 0], [2**62, 2**62]])
def test_bad_input_72_an_array_of_enormous_size(shape: list[int], tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    saved(path)
    header, arrays = damage.parts_of(path.read_bytes())
    header["state"]["dual_coef_"]["of"] = ["<f8", shape, "C"]
    data = {name: x.tobytes("A") for name, x in arrays.items()}
    path.write_bytes(damage.sealed(header, data))
    with pytest.raises(ModelFormatError, match="which is not in the file"):
        kreinlearn.load(path)  # for the first time, which imports more
    tracemalloc.start()
    with pytest.raises(ModelFormatError, match="which is not in the file"):
        kreinlearn.load(path)
    assert tracemalloc.get_traced_memory()[1] < MOST
    tracemalloc.stop()


def test_bad_input_73_classes_that_are_not_of_this_library_and_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    saved(path)
    header, arrays = damage.parts_of(path.read_bytes())
    evil: list[Any] = [
        {"type": "os.mkdir", "of": ["evil"]},
        {"type": "record", "of": ["os.mkdir", {"path": "evil"}]},
        {"type": "record", "of": ["Path", {}]},
        {"type": "kernel", "of": ["os.mkdir", {"path": "evil"}]},
        {"type": "Generator", "of": {"bit_generator": "shuffle"}},
        {"type": "network", "of": ["read_gpickle", {}, [], []]},
    ]
    for node in evil:
        header["parameters"]["random_state"] = node
        path.write_bytes(damage.sealed(header, arrays))
        with pytest.raises(ModelFormatError, match="cannot be loaded"):
            kreinlearn.load(path)
    _, _, text, data = damage.lines_of(path.read_bytes())
    path.write_bytes(damage.packed(b'{"state": 1, ' + text[1:], data))
    with pytest.raises(ModelFormatError, match="it has a field twice"):
        kreinlearn.load(path)
    assert list(tmp_path.iterdir()) == [path]


def test_bad_input_74_a_newer_format(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    saved(path)
    _, _, text, data = damage.lines_of(path.read_bytes())
    path.write_bytes(damage.packed(b'{"something": "new"}' + text, data, b"kreinlearn model 3"))
    with pytest.raises(ModelFormatError, match="written by a newer version of kreinlearn"):
        kreinlearn.load(path)


def test_an_old_format_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    saved(path)
    path.write_bytes(path.read_bytes().replace(b"kreinlearn model 2", b"kreinlearn model 1", 1))
    with pytest.raises(ModelFormatError, match=r"it has the old format 1, and 2 is read; .*anew$"):
        kreinlearn.load(path)


@pytest.mark.parametrize("library", ["kreinlearn", "scikit-learn"])
def test_bad_input_75_another_version_of_a_library(library: str, tmp_path: Path) -> None:
    path = tmp_path / "m.krein"
    model = saved(path)
    resealed(path, written_by={**versions(), library: "0.0.1"})
    with pytest.warns(InconsistentVersionWarning, match=rf"saved by {library} 0\.0\.1"):
        found = kreinlearn.load(path)
    assert found.predict([[0.5, 1.0]]) == model.predict([[0.5, 1.0]])


def test_files_that_are_not_there_or_no_files(tmp_path: Path) -> None:
    is_folder = IsADirectoryError if POSIX else PermissionError  # as the system says it
    with pytest.raises(FileNotFoundError, match=r"none\.krein.*: there is no such file in "):
        kreinlearn.load(tmp_path / "none.krein")
    with pytest.raises(
        IsADirectoryError, match="is a folder or no regular file; load reads a file that save wrote"
    ):
        kreinlearn.load(tmp_path)
    model = saved(tmp_path / "m.krein")
    with pytest.raises(FileNotFoundError, match=r"did you mean '.*m\.krein'"):
        kreinlearn.load(tmp_path / "mm.krein")
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "none" / "m.krein")
    with pytest.raises(is_folder):
        model.save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.krein"]
    if POSIX:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="no regular file"):
            kreinlearn.load(tmp_path / "pipe")


def test_an_array_of_another_model_is_found_by_the_digest(tmp_path: Path) -> None:
    """Whole and of the right shape, but not what was saved."""
    path, other = tmp_path / "m.krein", tmp_path / "other.krein"
    saved(path)
    saved(other, "sigmoid")
    text, strange = path.read_bytes(), other.read_bytes()
    (before, _), (_, others) = damage.parts_of(text), damage.parts_of(strange)
    for name in ("state.dual_coef_", "state._intercept", "columns.objects"):
        arrays = {**damage.parts_of(text).arrays, name: others[name] + 1}
        changed = damage.lines_of(damage.sealed(before, arrays))
        changed[1] = damage.lines_of(text)[1]
        path.write_bytes(b"\n".join(changed))
        with pytest.raises(ModelFormatError, match="sha256 is another"):
            kreinlearn.load(path)


def test_no_byte_of_the_structure_may_differ(tmp_path: Path) -> None:
    """Else two readers could find two models in one file."""
    path = tmp_path / "m.krein"
    saved(path)
    taken = []
    for what, damaged in damage.lies(path.read_bytes(), np.random.default_rng(3)):
        path.write_bytes(damaged)
        with suppress(ModelFormatError):
            kreinlearn.load(path)
            taken.append(what)
    assert taken == []
