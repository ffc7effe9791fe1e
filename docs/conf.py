"""The manual: `make docs` builds it, without a network and without warnings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["COLUMNS"] = "78"  # of the usage of commands

import kreinlearn  # noqa: E402

project = "kreinlearn"
author = "The kreinlearn developers"
copyright = author
release = version = kreinlearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "plain_docstrings",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "generated",
]
source_suffix = {".rst": "restructuredtext"}
exclude_patterns = ["_ext", "auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.md5"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"sklearn\..*")]  # its manual is elsewhere
toc_object_entries_show_parents = "hide"  # there is room for "fit()", without its class
smartquotes = False  # in docstrings "auto" is a value
suppress_warnings = ["myst.header", "config.cache"]

# API pages

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# methods that scikit-learn gives to every estimator
OF_SCIKIT_LEARN = {
    "get_feature_names_out", "get_metadata_routing", "get_params", "set_output", "set_params",
    *(f"set_{m}_request" for m in ("fit", "partial_fit", "predict", "score", "transform")),
}  # fmt: skip


def own_properties(fullname: str) -> list[str]:
    """Properties that a class of the package defines and describes."""
    place, _, name = fullname.rpartition(".")
    kind = getattr(sys.modules.get(place) or __import__(place, fromlist=[name]), name)
    own = [vars(c) for c in kind.__mro__ if c.__module__.startswith("kreinlearn")]
    found = {n: v for c in own for n, v in c.items() if isinstance(v, property) and v.__doc__}
    return sorted(n for n in found if not n.startswith("_"))


autosummary_context: dict[str, Any] = {
    "skipped_methods": OF_SCIKIT_LEARN,
    "own_properties": own_properties,
}

# Gallery

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
}

# Pages

html_theme = "pydata_sphinx_theme"
html_title = "kreinlearn"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
}
# pages that stand alone have no list of their section
html_sidebars: dict[str, list[str]] = {name: [] for name in ("index", "start", "migration", "faq")}
