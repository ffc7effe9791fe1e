"""What the pages say of kernels, commands and measurements comes from where it is defined."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.sphinx_ import Parser
from sphinx.directives.other import Include
from sphinx.util.docutils import SphinxDirective

from kreinlearn import kernels
from kreinlearn.kernels import Kernel

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
# modules of kernels -> what a reader has, and the extra that their functions come with
FAMILIES = {
    "vectors": ("Vectors", ""),
    "strings": ("Strings and token sequences", ""),
    "ngrams": ("Strings and token sequences, by their n-grams", ""),
    "positions": ("Strings and token sequences of one length, place by place", ""),
    "alignment": ("Proteins and DNA", "Extra: ``bio``."),
    "series": ("Time series", ""),
    "subsequences": (
        "Time series, by their subsequences",
        "Extra for series of unequal lengths: ``shapes``.",
    ),
    "convolutions": ("Time series, by convolutions", ""),
    "objects": ("Point sets", ""),
    "shapes": ("Contours and point sets", "Extra for ``earth_mover``: ``shapes``."),
    "graphs": ("Graphs", "Extra for graphs of networkx: ``graphs``."),
    "attributed": (
        "Graphs whose nodes carry numbers",
        "Extra of ``wasserstein_wl`` for graphs of unequal size: ``shapes``.",
    ),
    "sets": ("Sets", ""),
    "tables": ("Rows of mixed tables", ""),
}


class Generated(SphinxDirective):
    """A directive that writes reStructuredText."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes("\n".join(self.lines()), allow_section_headings=True)

    def lines(self) -> Iterator[str]:
        raise NotImplementedError


def escape(text: str) -> str:
    for sign in "\\*`|_":
        text = text.replace(sign, f"\\{sign}")
    return text


# Kernels


def named_kernels() -> dict[type[Kernel], list[str]]:
    """Classes with the names that make them, those of a family beside each other."""
    found: dict[type[Kernel], list[str]] = {}
    for name in kernels.registered():
        found.setdefault(type(kernels.resolve(name)), []).append(name)
    return found


class KernelTable(Generated):
    """One table per family, with one row per kernel."""

    def lines(self) -> Iterator[str]:
        families: dict[str, list[type[Kernel]]] = {}
        for kind in named_kernels():
            families.setdefault(kind.__module__.rpartition(".")[2], []).append(kind)
        for family, (title, extra) in FAMILIES.items():
            yield from [title, "-" * len(title), "", extra, ""]
            yield from [".. list-table::", "   :class: stacked", "   :header-rows: 1"]
            yield from ["   :widths: auto", ""]
            yield from ["   * - name", "     - kind", "     - what", "     - parameters"]
            for kind in sorted(families.pop(family), key=lambda kind: named_kernels()[kind]):
                yield from self.row(kind)
            yield ""

    def row(self, kind: type[Kernel]) -> Iterator[str]:
        kernel = kind()
        params = kernel.get_params(deep=False).items()
        yield "   * - " + ", ".join(f'``"{name}"``' for name in named_kernels()[kind])
        yield f"     - {'dissimilarity' if kernel.is_dissimilarity else 'similarity'}"
        summary = escape((kind.__doc__ or "").strip().split("\n\n")[0].replace("\n", " "))
        yield f"     - {summary} (:class:`~kreinlearn.kernels.{kind.__name__}`)"
        shown = ", ".join(f"``{name}={value!r}``" for name, value in params)
        yield f"     - {shown or 'no parameters'}"


# The command line


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: command for action in actions for name, command in action.choices.items()}


class CommandLine(Generated):
    """Every command with its arguments, from the parser itself."""

    def lines(self) -> Iterator[str]:
        from kreinlearn.cli.parser import parser

        for name, command in subcommands(parser()).items():
            title = f"kreinlearn {name}"
            yield from [f".. _command-{name}:", "", title, "-" * len(title), ""]
            if command.description:
                yield from [escape(command.description), ""]
            yield from [".. code-block:: text", ""]
            yield from [f"   {line}" for line in command.format_usage().splitlines()]
            yield ""
            for action in command._actions:
                yield from self.option(command, action)
            if command.epilog:
                yield from [".. code-block:: text", ""]
                yield from [f"   {line}".rstrip() for line in command.epilog.splitlines()]
                yield ""

    def option(self, command: argparse.ArgumentParser, action: Any) -> Iterator[str]:
        if action.help == argparse.SUPPRESS:
            return
        value = command._get_formatter()._format_args(action, (action.dest or "").upper())
        shown = [f"``{flag}{' ' + value if value else ''}``" for flag in action.option_strings]
        yield ", ".join(shown) or f"``{value}``"
        words = command._get_formatter()._expand_help(action) if action.help else ""
        yield from [f"    {escape(words)}", ""]


# Measurements


class Measured(Include):
    """A page of benchmarks/results without its title, with the pictures beside it."""

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if not (RESULTS / f"{name}.md").exists():
            text = f"Not measured here yet: python -m benchmarks.{name} --write does it."
            return [nodes.note("", nodes.paragraph(text=text))]
        self.arguments = [f"/../benchmarks/results/{name}.md"]
        self.options |= {"parser": Parser, "start-line": 1}
        found = super().run()
        for image in [image for node in found for image in node.findall(nodes.image)]:
            image["uri"] = f"/../benchmarks/results/{Path(image['uri']).name}"
        return found


def page_of(name: str) -> str:
    """The page of the manual that shows a page of benchmarks/results."""
    pages = Path(__file__).parents[1].glob("measured_*.rst")
    shown = f".. measured:: {name}\n"
    return next(page.stem for page in pages if shown in page.read_text(encoding="utf8"))


class MeasuredAt(Generated):
    """When pages of benchmarks/results were measured, and at which commits."""

    has_content = False
    required_arguments = 1
    final_argument_whitespace = True

    def lines(self) -> Iterator[str]:
        found = []
        for name in self.arguments[0].split():
            page = (RESULTS / f"{name}.md").read_text(encoding="utf8").splitlines()
            date, commit = (self.of_page(page, f"- {key}: ") for key in ("date", "commit"))
            found.append(f":doc:`{name} <{page_of(name)}>` on {date} at {commit}")
        yield f"Measured: {'; '.join(found)}."

    def of_page(self, page: list[str], key: str) -> str:
        return next(line.removeprefix(key) for line in page if line.startswith(key))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("kernel-table", KernelTable)
    app.add_directive("command-line", CommandLine)
    app.add_directive("measured", Measured)
    app.add_directive("measured-at", MeasuredAt)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
