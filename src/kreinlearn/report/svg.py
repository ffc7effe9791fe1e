"""Drawings of matplotlib as small SVG texts that can stand in one page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FONT = "font-family: 'DejaVu Sans', Verdana, sans-serif"  # matplotlib measures with the first

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def drawing(size: tuple[float, float], draw: Callable[[Figure], object]) -> str:
    """What ``draw`` puts on a figure of so many inches, as SVG, which is the same each time."""
    import matplotlib
    from matplotlib.figure import Figure

    from kreinlearn.plotting.style import SETTINGS

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS}):
        figure, file = Figure(figsize=size, layout="constrained"), io.StringIO()
        draw(figure)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    return lean(file.getvalue())


def lean(svg: str) -> str:
    """A drawing with coordinates to a hundredth of a point and without a style sheet."""
    root = ElementTree.fromstring(svg)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))
    for element in root.iter():
        for child in element.findall(f"{{{SVG}}}style"):
            element.remove(child)
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        for name in ("d", "x", "y", "transform", "points"):
            if name in element.attrib:
                numbers = re.sub(r"(\.\d\d)\d+", r"\1", element.attrib[name])
                element.set(name, " ".join(numbers.split()))
        if "style" in element.attrib:
            element.set("style", re.sub(r"font-family:[^;]*", FONT, element.attrib["style"]))
        element.text, element.tail = (
            text if text and text.strip() else None for text in (element.text, element.tail)
        )
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")  # as in the style sheet
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def inlined(svg: str, prefix: str, title: str, alt: str) -> str:
    """A drawing as an element of a page, with a title, a description and ids of its own."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, f"{prefix}-{value}")
            elif name in ("href", f"{{{XLINK}}}href"):
                element.set(name, re.sub("^#", f"#{prefix}-", value))
            else:
                element.set(name, re.sub(r"url\(#", f"url(#{prefix}-", value))
    for place, (tag, text) in enumerate((("title", title), ("desc", alt))):
        child = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{prefix}-{tag}-text"})
        child.text = text
        root.insert(place, child)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title-text {prefix}-desc-text")
    return ElementTree.tostring(root, encoding="unicode")
