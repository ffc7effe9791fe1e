"""The manual: its code runs, its names exist, and everything public is in it."""

from __future__ import annotations

import doctest
import importlib
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import kreinlearn
from kreinlearn import datasets, evaluation, kernels, plotting
from kreinlearn.kernels.candidates import KINDS, MANY
from kreinlearn.kernels.scikit import SklearnMetric
from kreinlearn.kernels.transformed import Normalized
from kreinlearn.learn.combination import COMPARED
from tests.systems import linked

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.rst"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROLE = re.compile(r":(?:class|func|obj):`(?:[^`<]*<)?~?(kreinlearn[\w.]+)>?`")
DOC = re.compile(r":doc:`(?:[^`<]*<)?([\w/]+)>?`")
GALLERY = re.compile(r"sphx_glr_auto_examples_(\w+)\.py")
ESTIMATOR = re.compile(r"\b(?:Krein|Similarity|Spectrum)[A-Z]\w+")
OTHERS = {"KreinEstimator"}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf8")


def listed() -> set[str]:
    """What the API reference lists, with its module."""
    entries = re.findall(r"^   ([a-z_]*\.?\w+)$", text_of(DOCS / "api.rst"), re.MULTILINE)
    return {f"kreinlearn.{entry}" for entry in entries}


def there(name: str) -> bool:
    """Whether a dotted name leads to something."""
    module, *rest = "kreinlearn", *name.split(".")[1:]
    found: object = importlib.import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(module)
            except ModuleNotFoundError:
                return False
    return True


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_on_a_page_gives_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if "plotting" in text_of(path):
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.setattr(kernels.base, "REGISTRY", dict(kernels.base.REGISTRY))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert found.failed == 0


def test_pages_that_should_have_code_have_some() -> None:
    with_code = {path.stem for path in PAGES if ">>> " in text_of(path)}
    wanted = {"index", "start", "indefinite", "objects", "scale", "model_files", "pictures"}
    wanted |= {"migration", "several", "extending", "tasks", "choosing", "features", "faq"}
    assert wanted <= with_code
    skipped = [path.stem for path in PAGES if "+SKIP" in text_of(path)]
    assert skipped == []


def test_every_kernel_that_is_compared_by_default_is_on_the_page() -> None:
    page = " ".join(text_of(DOCS / "several.rst").split())
    named = [kernel for _, made in KINDS.values() for kernel in made()]
    assert len(named) > 15
    assert [one for one in named if _in_code(one) not in page] == []
    assert str(COMPARED) in page
    assert f"{MANY:,}" in page


def _in_code(kernel: kernels.Kernel) -> str:
    """A kernel as the table of the page writes it."""
    if isinstance(kernel, SklearnMetric):
        return f'``SklearnMetric("{kernel.metric}")``'
    inner = kernel.kernel if isinstance(kernel, Normalized) else kernel
    return f"``{' '.join(repr(inner).split())}``".replace("'", '"')


def test_every_public_name_is_in_the_reference() -> None:
    public = {f"kreinlearn.{name}" for name in kreinlearn.__all__}
    for module in (kernels, plotting, evaluation):
        own = set(module.__all__) - set(kreinlearn.__all__)
        public |= {f"{module.__name__}.{name}" for name in own}
    public |= {
        f"{datasets.__name__}.{name}"
        for name, value in vars(datasets).items()
        if getattr(value, "__module__", "") == datasets.__name__ and name[0] != "_"
    }
    assert public - listed() == set()


def test_every_name_in_the_reference_exists() -> None:
    assert len(listed()) > 60
    assert [name for name in sorted(listed()) if not there(name)] == []
    assert not there("kreinlearn.KreinMagic")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_mentions_only_what_exists(path: Path) -> None:
    text = text_of(path)
    assert [name for name in ROLE.findall(text) if not there(name)] == []
    assert set(ROLE.findall(text)) <= listed() | {"kreinlearn.report.write_report"}
    mentioned = {name for name in ESTIMATOR.findall(text) if name not in kernels.__all__}
    displays = set(plotting.__all__)
    assert mentioned <= {*kreinlearn.__all__, *displays, *OTHERS}
    pages = {page.stem for page in PAGES} | {"auto_examples/index"}
    assert set(DOC.findall(text)) <= pages
    examples = {example.stem for example in (ROOT / "examples").glob("*.py")}
    assert set(GALLERY.findall(text)) <= examples


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_page_is_reached(path: Path) -> None:
    entry = re.compile(rf"^   (?:.+ <{path.stem}>|{path.stem})$", re.MULTILINE)
    lists = ("index", "guide", "choosing", "benchmarks", "background")
    assert path.stem == "index" or any(entry.search(text_of(DOCS / f"{n}.rst")) for n in lists)


def test_the_manual_is_locked_within_the_tests() -> None:
    """So that `make docs` after `make test` only adds packages."""
    pin = re.compile(r"^([A-Za-z][\w.-]*==\S+)", re.MULTILINE)
    test, docs = (
        set(pin.findall(text_of(ROOT / f"requirements/{n}.txt"))) for n in ("test", "docs")
    )
    names = {entry.split("==")[0] for entry in test}
    assert {entry for entry in docs - test if entry.split("==")[0] in names} == set()
    assert "sphinx" in {entry.split("==")[0] for entry in docs}
    assert "://" not in text_of(ROOT / "requirements/docs.txt")


def test_every_message_of_the_faq_is_raised_on_it() -> None:
    """A message is a section, and each section has code whose output is checked."""
    sections = re.split(r"^(.+)\n~~~+\n", text_of(DOCS / "faq.rst"), flags=re.MULTILINE)
    titles, texts = sections[1::2], sections[2::2]
    assert len(titles) >= 15
    shows = re.compile(r"^(?:Traceback \(|UserWarning: |RareClasses: )", re.MULTILINE)
    for title, text in zip(titles, texts, strict=True):
        assert shows.search(text), title
        assert re.search(r"\*Why\*:\s.*\*What\s+to\s+do\*:\s", text, re.DOTALL), title


def test_every_figure_of_the_benchmarks_is_measured() -> None:
    """What the overview says was found stands so in the page that it names."""
    page = text_of(DOCS / "benchmarks.rst")
    rows = re.findall(r"^   \* - (.+)\n     - (.+)\n     - ``(\w+)``$", page, re.MULTILINE)
    assert len(rows) > 12
    for what, found, name in rows:
        measured = " ".join(text_of(ROOT / f"benchmarks/results/{name}.md").split())
        assert found in measured, what


def test_every_measured_page_is_in_the_manual() -> None:
    included = re.findall(r"^\.\. measured:: (\w+)$", "\n".join(map(text_of, PAGES)), re.MULTILINE)
    assert sorted(included) == sorted(p.stem for p in (ROOT / "benchmarks/results").glob("*.md"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, without running the examples; a warning is an error."""
    pytest.importorskip("sphinx_gallery", reason='the manual needs pip install "kreinlearn[docs]"')
    folder = tmp_path_factory.mktemp("manual")
    generated = shutil.ignore_patterns("auto_examples", "generated")
    shutil.copytree(DOCS, folder / "docs", ignore=generated)
    for name in ("examples", "benchmarks", "paper", "CHANGELOG.md", "CONTRIBUTING.md"):
        linked(folder / name, ROOT / name)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
    command += ["-D", "plot_gallery=0", "docs", "html"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "html"


def test_every_kernel_is_in_the_table(built: Path) -> None:
    page = text_of(built / "objects.html")
    assert [
        name for name in kernels.registered() if f'"{name}"' not in page.replace("&quot;", '"')
    ] == []


def test_every_option_of_the_commands_is_on_the_page(built: Path) -> None:
    from kreinlearn.cli.parser import parser

    page = text_of(built / "command_line.html")
    [commands] = [action for action in parser()._actions if action.choices]
    for name, command in commands.choices.items():
        assert f"kreinlearn {name}" in page
        flags = [flag for action in command._actions for flag in action.option_strings]
        assert [flag for flag in flags if flag not in page] == []


def test_built_pages_need_no_network_and_links_between_them_resolve(built: Path) -> None:
    pages = [page for page in built.rglob("*.html") if "_static" not in page.parts]
    assert len(pages) > 90
    outside = re.compile(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(?:https?:)?//[^"]+"')
    for page in pages:
        text = text_of(page)
        assert outside.findall(text) == [], page.name
        for target in set(re.findall(r'href="([^"#?:]+)["#?]', text)):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_a_docstring_is_rendered_as_it_was_meant(built: Path) -> None:
    page = text_of(built / "generated" / "kreinlearn.KreinRidge.html")
    plain = re.sub(r"<[^>]+>", "", page)
    assert "lambda_plusfloat or &quot;auto&quot;, default=&quot;auto&quot;" in plain
    assert "coef_ndarray of shape (rank_,) or (n_outputs, rank_)" in plain
    assert "Coefficients of the features." in plain
    assert "system-message" not in page


def test_every_row_of_the_bad_inputs_is_there_once_and_tested() -> None:
    rows = re.findall(r"^   \* - (\d+)$", text_of(DOCS / "bad_inputs.rst"), re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, len(rows) + 1))
    files = (ROOT / "tests").rglob("test_*.py")
    tested = {
        int(row) for file in files for row in re.findall(r"def test_bad_input_(\d+)", text_of(file))
    }
    assert tested == set(range(1, len(rows) + 1))
