"""Files, flags and interruptions at the command line: one line, a status, nothing left behind.

The numbers in the names of the tests are rows of the table in docs/bad_inputs.rst.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kreinlearn import cli, load, predict_to, table
from kreinlearn.cli import fit
from kreinlearn.datasets import make_noisy_strings
from tests.systems import link, posix_only, press, small_files

WORDS, CLASSES = make_noisy_strings(30, n_classes=2, random_state=0)
ROWS = [f"{text},{'ab'[c]}\n" for text, c in zip(WORDS, CLASSES, strict=True)]
TABLE = "text,label\n" + "".join(ROWS)
FIT = ["--target", "label", "--column", "text", "--kernel", "levenshtein", "-o", "model.krein"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(content: str | bytes, name: str = "x.csv") -> str:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def error_of(words: list[str], capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    """The one line that a call ends with; it has left nothing behind."""
    before = sorted(os.listdir())
    try:
        found = cli.main(words)
    except SystemExit as exit:
        found = exit.code  # type: ignore[assignment]
    out, error = capsys.readouterr()
    assert found == status, error
    assert out == ""
    assert sorted(os.listdir()) == before
    assert error.endswith("\n")
    *_, last = error.splitlines()
    assert last.startswith("kreinlearn")
    assert "Traceback" not in error
    return last


def test_bad_input_76_csv_row_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    file = written('text,label\n"two\nlines",a\nb,a,c\n')
    error = error_of(["fit", file, *FIT], capsys)
    assert error == (
        "kreinlearn: x.csv, line 4: 3 fields, but the header names 2; is a delimiter inside a "
        "text not quoted?"
    )


def test_bad_input_77_csv_row_too_short(capsys: pytest.CaptureFixture[str]) -> None:
    file = written(TABLE + "alone\n")
    error = error_of(["fit", file, *FIT], capsys)
    assert "x.csv, line 32: 1 field, but the header names 2" in error
    cli.main(["fit", written(TABLE, "good.csv"), *FIT, "--quiet"])
    capsys.readouterr()
    error = error_of(["predict", "model.krein", file, "-o", "out.csv"], capsys)  # in its last block
    assert "line 32: 1 field" in error


def test_bad_input_78_na_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["NA", "null", "nan", "None", "007", "-"]
    rows = [f"{word},{'x' * (i % 2) or 'NA'}" for i, word in enumerate(words * 4)]
    file = written("\n".join(["text,label", *rows]))
    assert cli.main(["fit", file, *FIT, "--quiet"]) == 0
    model = load("model.krein")
    assert set(model.landmarks_) == set(words)
    assert model.classes_.tolist() == ["NA", "x"]
    capsys.readouterr()
    assert cli.main(["predict", "model.krein", file, "--quiet"]) == 0
    assert capsys.readouterr().out.split() == ["prediction", *["NA", "x"] * 12]


def test_bad_input_79_csv_in_latin_1(capsys: pytest.CaptureFixture[str]) -> None:
    content = TABLE + "café,a\n"
    file = written(content.encode("latin-1"))
    error = error_of(["fit", file, *FIT], capsys)
    assert "x.csv, line 32: the byte 0xe9 is not in utf-8" in error
    assert "--encoding latin-1" in error
    assert cli.main(["fit", file, *FIT, "--quiet", "--encoding", "latin-1"]) == 0
    assert "café" in load("model.krein").landmarks_


def test_bad_input_80_byte_order_marks(capsys: pytest.CaptureFixture[str]) -> None:
    content = TABLE + "e\u0301té,b\n"  # decomposed and composed: neither is changed
    found = []
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        file = written(content.encode(encoding), f"{encoding}.csv")
        assert cli.main(["fit", file, *FIT, "--quiet", "--force"]) == 0
        found.append(load("model.krein").landmarks_)
    assert all(one == found[0] for one in found)
    assert "e\u0301té" in found[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "gone.csv: there is no such file in "),
        ("gone/x.csv", None, "x.csv: there is no such file, nor a folder "),
        ("x.csv", b"", "x.csv is empty"),
        ("x.csv", b"\n\n", "x.csv is empty: it has blank lines only"),
        ("x.csv", b"text,label\n", "x.csv has no rows"),
        ("x.csv.gz", b"\x1f\x8b\x08\x00junk", "x.csv.gz is damaged: it cannot be unpacked"),
        ("x.csv", b"PK\x03\x04junk", "x.csv is no text but a ZIP archive, a spreadsheet perhaps"),
        ("x.csv", b"text,label\na\0,b\n", "x.csv, line 2: there is a NUL byte"),
        ("x.csv", bytes(range(128, 256)), "x.csv, line 1: the byte 0x80 is not in utf-8"),
        ("x.csv", b'text,label\n"open,a\n', "x.csv, line 2: unexpected end of data"),
        ("x.npy", b"", "x.npy is empty"),
        ("x.npy", b"text,label\na,b\n", "x.npy is no .npy file"),
        ("x.npz", b"text,label\na,b\n", "x.npz is no .npz file, or damaged"),
        ("x.mat", b"text,label\na,b\n", "x.mat is not read: save its arrays by scipy.io.loadmat"),
        ("x.parquet", b"text,label\na,b\n", "x.parquet cannot be read as Parquet"),
        ("x.jsonl", b'{"text": "a", "label": 1}\n[1]\n', "line 2: [1], but a line must be an obj"),
        ("x.jsonl", b'{"text": "a", "label": 1}\n{"text"\n', "x.jsonl, line 2: no JSON"),
        ("x.jsonl", b'{"text": "a", "label": 1}\n{"text": ""}\n', "line 2: there is no key 'label"),
        ("x.xlsx", b"PK", "x.xlsx is not read: save the table as CSV"),
        ("x.json", b"[]", "x.json is not read: write one object per line and name it .jsonl"),
        ("x.pkl", b"\x80\x04.", "x.pkl is not read: pickles are not read, as they may run code"),
        ("x.doc", b"a", "x.doc is of no known kind; a path ends in .npy, .npz"),
        (".", None, ". is a folder; name a file"),
    ],
)  # fmt: skip
def test_bad_input_81_empty_missing_or_another_file(
    name: str, content: bytes | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        written(content, name)
    assert message in error_of(["fit", name, *FIT], capsys)


def test_bad_input_81_a_folder_of_many_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    written(TABLE)
    written(b"PAR1", "y.parquet")
    error = error_of(["fit", ".", *FIT], capsys)
    assert error == (
        "kreinlearn: . is a folder; name a file, or a folder that holds nothing but .parquet files"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit x.csv", "required: -o/--output"),
        ("fit x.csv -o m.krein", "--target is needed"),
        ("fit x.csv --target label -o m.krein --landmarks 0", "'0' is not auto, all, a number or"),
        ("fit x.csv --target label -o m.krein --landmarks 1.5", "'1.5' is not auto, all"),
        ("fit x.csv --target label -o m.krein --memory lots", "'lots' is not a size such as"),
        ("fit x.csv --target label -o m.krein --cv 1", "'1' is not a number of folds"),
        ("fit x.csv --target label -o m.krein --jobs 0", "'0' is not a number of workers"),
        ("fit x.csv --target label -o m.krein --seed -1", "'-1' is not a whole number, 0 or more"),
        ("fit x.csv --target label -o m.krein --encoding klingon", "'klingon' is no known encod"),
        ("fit x.csv --target label -o m.krein --delimiter ab", "'ab' is not one character"),
        ("fit x.csv --target label -o m.krein --estimator forest", "no estimator 'forest'; there"),
        ("fit x.csv --target label -o m.krein --kernel levenstein", "did you mean levenshtein"),
        ("fit x.csv --target label -o m.krein --kernel-param a=1", "give --kernel NAME too"),
        ("fit x.csv --target label -o m.krein --kernel rbf --kernel-param a", "not of the form"),
        ("fit x.csv --target label -o m.krein --kernel levenshtein --kernel-param a=1",
         "a: levenshtein has no such parameter; there are: normalized=False, weights=(1, 1, 1)"),
        ("fit gone.csv --target label -o m.krein --kernel rbf --kernel-param a=1",
         "--kernel-param a: rbf has no such parameter; there are: gamma"),
        ("inspect gone.csv --kernel minkowski --kernel-param q=1", "there are: p, w"),
        ("fit gone.csv --target label -o m.krein --kernel precomputed --kernel-param a=1",
         "there are: none"),
        ("fit x.csv --target label -o m.krein --param colour=red", "--param colour: KreinClassi"),
        ("fit x.csv --target label -o m.krein --param n_jobs=2", "--param n_jobs: KreinClassif"),
        ("fit gone.csv --target label -o m.krein --estimator ridge --param lambda_plus=-1",
         "The 'lambda_plus' parameter of KreinRidgeClassifier must be"),
        ("fit gone.csv --target label -o m.krein --estimator ridge --param lambda_plus=abc",
         "Got 'abc' instead"),
        ("fit gone.csv --target label -o m.krein --estimator vc-ridge --task regression "
         "--param class_weight=balanced", "--param class_weight: KreinVCRidge has"),
        ("fit gone.csv --target label -o m.krein --task regression --estimator svc",
         "--estimator svc is not for --task regression"),
        ("fit x.csv --target label -o m.krein --task regression --estimator KreinSVC",
         "KreinSVC is for classification"),
        ("evaluate x.csv --target label --html a.html --csv a.html",
         "--html and --csv are one file, a.html: name two"),
        ("evaluate x.csv --target label --html a.html --csv ./a.html", "are one file"),
        ("evaluate x.csv --target label --csv x.csv --force", "--csv: x.csv is read, and would be"),
        ("inspect x.csv --html ./x.csv --force", "--html: x.csv is read, and would be written"),
        ("inspect x.csv --samples 1", "'1' is not a number of objects, 2 or more"),
        ("fit x.csv --target label -o m.krein --verbose", "there is no flag --verbose"),
        ("predict m.krein x.csv -o out.txt", "it must end in one of .csv, .tsv, .jsonl, .parquet"),
        ("predict m.krein x.csv --id prediction", "what is written has a column of that name"),
        ("predict x.csv m.krein", "the model comes first: predict m.krein x.csv"),
        ("approximate x.csv -o out.csv", "it must end in .npz"),
        ("completion tcsh", "invalid choice: 'tcsh'"),
        ("teach x.csv", "there is no command 'teach'; there are inspect, fit,"),
        ("evalute x.csv", "there is no command 'evalute'; did you mean evaluate?"),
        ("fit x.csv --traget label", "there is no flag --traget; did you mean --target"),
        ("fit x.csv --target label --ouput m", "there is no flag --ouput; did you mean --output?"),
        ("fit x.csv --target label --estimator rigde -o m", "did you mean ridge"),
        ("fit x.csv --target label --kernel levenstein -o m", "did you mean levenshtein or"),
        ("evaluate x.csv --target label --learners krein,nieghbours", "did you mean neighbours"),
        ("evaluate x.csv --target label --learners 7", "there is no learner '7'; there are krein,"),
    ],
)  # fmt: skip
def test_bad_input_82_wrong_flag_or_value(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(TABLE)
    error = error_of(words.split(), capsys, status=2)
    assert message in error
    assert f"(see kreinlearn {words.split()[0]} --help)" in error or "(see kreinlearn" in error


@pytest.mark.parametrize(
    "words",
    [
        "fit x.csv --targ label -o m.krein", "fit x.csv --target label --out m.krein",
        "predict m.krein x.csv --prob", "inspect x.csv --kern levenshtein", "eval x.csv",
        "evaluate x.csv --target label --ht r.html", "approximate x.csv -o f.npz --landm 3",
    ],
)  # fmt: skip
def test_bad_input_83_abbreviated_flag(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(TABLE)
    error = error_of(words.split(), capsys, status=2)
    assert "there is no flag" in error or "there is no command" in error
    assert "did you mean" in error


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("fit x.csv --target label -o there", "there"),
        ("inspect x.csv --column text --html there", "there"),
        ("evaluate x.csv --target label --csv there", "there"),
        ("evaluate x.csv --target label --html there", "there"),
        ("approximate x.csv --column text -o there.npz", "there.npz"),
        ("predict model.krein x.csv -o there.csv", "there.csv"),
    ],
)
def test_bad_input_84_output_file_exists(
    words: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(TABLE)
    assert cli.main(["fit", file, *FIT, "--quiet"]) == 0
    capsys.readouterr()
    written("mine", name)
    error = error_of(words.split(), capsys)
    assert error == f"kreinlearn: {name} exists; give it another name, or --force to replace it"
    assert Path(name).read_text() == "mine"


def test_bad_input_84_a_link_to_nothing_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    file = written(TABLE)
    assert cli.main(["fit", file, *FIT, "--quiet"]) == 0
    link(Path("out.csv"), "nowhere.csv")
    capsys.readouterr()
    error = error_of(["predict", "model.krein", file, "-o", "out.csv"], capsys)
    assert "out.csv exists; give it another name, or --force to replace it" in error
    assert Path("out.csv").is_symlink()
    assert not Path("nowhere.csv").exists()


def test_bad_input_84_force_replaces_and_never_what_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(TABLE)
    written("mine", "model.krein")
    assert cli.main(["fit", file, *FIT, "--quiet", "--force"]) == 0
    assert load("model.krein").n_landmarks_ == 30
    capsys.readouterr()
    error = error_of(["predict", "model.krein", file, "-o", "./x.csv", "--force"], capsys, 2)
    assert "x.csv is read, and would be written" in error
    assert Path(file).read_text() == TABLE
    error = error_of(["fit", file, *FIT[:-1], "gone/model.krein"], capsys)
    assert "there is no folder" in error
    Path("folder").mkdir()
    error = error_of(["fit", file, *FIT[:-1], "folder", "--force"], capsys)
    assert "folder is a folder; name a file" in error


# Interrupted, killed, out of room

COMMANDS = {
    "fit": ["fit", "big.csv", "--landmarks", "60", *FIT, "--force"],
    "predict": ["predict", "model.krein", "big.csv", "-o", "out.csv", "--force"],
    "approximate": ["approximate", "big.csv", "--kernel", "levenshtein", "--column", "text",
                    "--landmarks", "400", "-o", "factors.npz", "--force"],
}  # fmt: skip


@pytest.fixture
def model() -> bytes:
    """A model is there, and enough rows for a command to be at work for a while."""
    written(TABLE)
    assert cli.main(["fit", "x.csv", *FIT, "--quiet"]) == 0
    written("".join(["text,label\n", *ROWS * 3000]), "big.csv")
    return Path("model.krein").read_bytes()


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_64_ctrl_c_leaves_nothing_behind(
    command: str, number: signal.Signals, model: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    before, done = sorted(os.listdir()), threading.Event()
    capsys.readouterr()

    def press_in_time() -> None:
        """Once a file is begun; of a fit, which writes at its end only, while it reads."""
        while sorted(os.listdir()) == before and not done.wait(0.01):
            if command == "fit" and not done.wait(0.2):
                break
        if not done.is_set():
            press(number)

    presser = threading.Thread(target=press_in_time)
    presser.start()
    try:
        status = cli.main(COMMANDS[command])
    except SystemExit as exit:
        status = exit.code  # type: ignore[assignment]
    finally:
        done.set()
        presser.join()
    out, error = capsys.readouterr()
    assert status == (130 if number == signal.SIGINT else 143)
    assert "Traceback" not in error
    assert out == ""
    assert sorted(os.listdir()) == before
    assert Path("model.krein").read_bytes() == model  # what --force would have replaced


@posix_only("a way to interrupt one other process")
@pytest.mark.usefixtures("model")
def test_bad_input_64_ctrl_c_as_a_process() -> None:
    before = sorted(os.listdir())
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{hears}; import sys; from kreinlearn.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *COMMANDS["predict"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    limit = time.monotonic() + 100
    while sorted(os.listdir()) == before and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, b"", b"interrupted\n")
    assert sorted(os.listdir()) == before


@posix_only("limits on the size of files")
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_63_a_full_disk_leaves_nothing_behind(
    command: str, model: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files may grow to 3,000 bytes: a write beyond fails as it does on a full disk."""
    written("".join(["text,label\n", *ROWS * 60]), "big.csv")
    capsys.readouterr()
    with small_files(3000):
        error = error_of(COMMANDS[command], capsys)
    assert error == f"kreinlearn: {COMMANDS[command][-2]}: File too large"
    assert Path("model.krein").read_bytes() == model


def test_a_wrong_target_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    file = written(TABLE)
    words = ["fit", file, "--target", "labels", "-o", "m.krein"]
    assert "no column 'labels' (did you mean 'label'?)" in error_of(words, capsys)


def test_an_error_of_our_own_is_said_to_be_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    file = written(TABLE)
    monkeypatch.setattr(fit, "_estimator", broken)
    error = error_of(["fit", file, *FIT], capsys)
    assert error.endswith(
        "internal error, KeyError: 'oops'; with KREINLEARN_DEBUG=1 it shows where"
    )
    monkeypatch.setenv("KREINLEARN_DEBUG", "1")
    assert cli.main(["fit", file, *FIT]) == 1
    assert "Traceback" in capsys.readouterr().err


@posix_only("getrusage, which knows the most memory that a process had")
def test_memory_stays_bounded_while_a_long_file_is_predicted() -> None:
    """Twenty times the rows: not a quarter of their size more memory."""
    written(TABLE)
    assert cli.main(["fit", "x.csv", *FIT, "--quiet", "--landmarks", "5"]) == 0
    code = """
import resource, sys
from kreinlearn.cli import main
unit = 1 if sys.platform == "darwin" else 1024
for name in sys.argv[1:]:
    assert main(["predict", "model.krein", name, "-o", f"out-{name}", "--quiet"]) == 0
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""
    note = "x" * 300
    for times in (400, 8000):
        lines = (f"{note},{row}" for _ in range(times) for row in ROWS)
        with Path(f"{times}.csv").open("w") as file:
            file.writelines(["note,text,label\n", *lines])
    done = subprocess.run(
        [sys.executable, "-c", code, "400.csv", "8000.csv"], capture_output=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stdout.split())
    assert second - first < Path("8000.csv").stat().st_size / 4
    with Path("out-8000.csv").open() as out:
        assert sum(1 for _ in out) == 30 * 8000 + 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a", "label": 1, "text": "b"}', "x.jsonl, line 2: no JSON: the key 'text' is"),
        ('{"text": {"k": 1, "k": 2}, "label": 1}', "x.jsonl, line 2: no JSON: the key 'k' is th"),
        (f'{{"text": "a", "label": {"9" * 5000}}}', "x.jsonl, line 2: an integer has more than 4,"),
        ("[" * 100_000, "x.jsonl, line 2: lists or objects are nested too deeply"),
        (f'{{"text": "a", "label": {"9" * 400}}}', "of x.jsonl (line 2) is 999"),
    ],
    ids=["twice", "twice inside", "5000 digits", "nested", "400 digits"],
)
def test_bad_input_92_lines_of_json(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "".join(f'{{"text": "w{i}", "label": {i}.5}}\n' for i in range(30))
    file = written(f'{{"text": "a", "label": 1}}\n{line}\n{more}', "x.jsonl")
    error = error_of(["fit", file, *FIT, "--task", "regression"], capsys)
    assert message in error


def test_bad_input_93_digits_of_another_script(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i},{i / 2},{i % 2}\n" for i in range(30))
    file = written(f"a,b,label\n{rows}\u0661\u0662,3,1\n")
    words = ["fit", file, "--target", "label", "-o", "model.krein"]
    assert "column 'a' of x.csv (line 32) is '\u0661\u0662'" in error_of(words, capsys)


def test_bad_input_96_formulas_of_a_spreadsheet(capsys: pytest.CaptureFixture[str]) -> None:
    labels = ["=1+1", "@SUM(A1)", "-2", "+cmd", "plain"]
    rows = "".join(f"{label[:2] * (i % 3 + 1)},{label}\n" for i in range(8) for label in labels)
    file = written(f"text,label\n{rows}")
    assert cli.main(["fit", file, *FIT, "--quiet"]) == 0
    known = set(load("model.krein").classes_.tolist())
    assert known == set(labels)
    safe = ["--spreadsheet"]
    for name, flags in (("as.csv", []), ("safe.csv", safe), ("safe.tsv", safe)):
        assert cli.main(["predict", "model.krein", file, "-o", name, "--quiet", *flags]) == 0
        found = set(Path(name).read_text().splitlines()[1:])
        wanted = {f"'{one}" if flags and one[0] in "=@+" else one for one in known}
        assert found <= wanted
        assert any(one.startswith("'") for one in found) == bool(flags)
    capsys.readouterr()
    assert cli.main(["predict", "model.krein", file, "--quiet", "--spreadsheet"]) == 0
    assert "\n'=1+1\n" in capsys.readouterr().out
    predict_to(load("model.krein"), ["=1", "@S"], "to.csv", spreadsheet=True)
    assert Path("to.csv").read_text().startswith("prediction\n'")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_bad_input_98_rows_without_text_or_label(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [f"w{i % 7}{'x' * (i % 3)}" for i in range(60)]
    labels = ["a" if i % 3 else "b" for i in range(60)]
    for i in (*range(10, 20), 40):
        texts[i] = " " if i % 2 else ""
    labels[5] = labels[40] = ""
    file = table_of(kind, text=texts, label=labels)
    place = "rows" if kind == "parquet" else "lines"
    first = {"csv": 12, "jsonl": 11, "parquet": 10}[kind]
    some = ", ".join(str(first + i) for i in range(5))
    said = error_of(["fit", file, *FIT], capsys)
    assert f"{file}: text is empty in 11 rows ({place} {some}, ...), " in said
    assert f"label is empty in 2 rows ({place} {first - 5}, {first + 30});" in said
    assert "--drop-missing" in said
    assert cli.main(["fit", file, *FIT, "--drop-missing"]) == 0
    assert "left out: 12 of 60 rows; text is empty in 11 rows" in capsys.readouterr().err
    model = load("model.krein")
    kept = [i for i in range(60) if texts[i].strip() and labels[i]]
    assert len(kept) == 48
    assert sorted(model.landmarks_) == sorted(texts[i] for i in kept)
    assert "text is empty in 11 rows" in error_of(["predict", "model.krein", file], capsys)
    assert cli.main(["predict", "model.krein", file, "--drop-missing", "-o", "out.csv"]) == 0
    assert len(Path("out.csv").read_text().splitlines()) == 1 + 49
    words = ["evaluate", file, "--target", "label", "--column", "text", "--kernel", "levenshtein"]
    words += ["--learners", "neighbours", "--cv", "2", "--json"]
    assert "text is empty in 11 rows" in error_of(words, capsys)
    assert cli.main([*words, "--drop-missing"]) == 0
    assert json.loads(capsys.readouterr().out)["n_objects"] == 48


def test_bad_input_98_a_label_is_missing_in_another_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = table_of("csv", text=[f"w{i % 5}{i % 3}" for i in range(30)])
    labels = ["a", "b", "c"] * 10
    labels[4] = " "
    Path("y.csv").write_text("kind\n" + "".join(f"{one}\n" for one in labels))
    words = ["fit", file, "--labels", "y.csv", "-o", "model.krein", "--kernel", "levenshtein"]
    assert "kind is empty in one row (line 6)" in error_of(words, capsys)
    assert cli.main([*words, "--drop-missing"]) == 0
    assert load("model.krein").n_landmarks_ == 29


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_bad_input_99_another_separator(
    mark: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"w{i % 7}, {i % 2}{mark}{'ab'[i % 2]}" for i in range(30)]
    file = written("\n".join([f"text{mark}label", *rows]))
    assert cli.main(["fit", file, "--target", "label", "-o", "model.krein"]) == 0
    assert f"x.csv: columns are separated by {name} (--delimiter)" in capsys.readouterr().err
    assert cli.main(["predict", "model.krein", file, "-o", "out.csv"]) == 0
    assert f"separated by {name}" in capsys.readouterr().err
    assert "w0, 0" in load("model.krein").landmarks_
    usual = written(TABLE)
    assert cli.main(["fit", usual, *FIT, "--force"]) == 0
    assert "separated" not in capsys.readouterr().err


def test_bad_input_99_a_mark_within_texts_is_no_separator() -> None:
    file = written("text\n" + "a;b\n" * 5)  # the first line has none
    assert table(file).names == ["text"]
    file = written("text,label\n" + "a;b;c,1\n" * 5)
    assert table(file).names == ["text", "label"]
    file = written("a|b\n1|2\n3\n")  # not equally many
    assert table(file).names == ["a|b"]


def table_of(kind: str, **columns: list[str]) -> str:
    """A file of this kind with columns of texts."""
    rows = list(zip(*columns.values(), strict=True))
    if kind == "csv":
        with Path("x.csv").open("w", newline="") as file:
            csv.writer(file).writerows([list(columns), *rows])
    elif kind == "jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows]
        Path("x.jsonl").write_text("".join(lines))
    else:
        pa, pq = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
        pq.write_table(pa.table(columns), "x.parquet")
    return f"x.{kind}"
