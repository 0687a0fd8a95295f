"""The documentation: `python -m sphinx --fail-on-warning docs build/docs`."""

import os
import re
import sys
from typing import Any

from sphinx.application import Sphinx

import optuna_daub


project = "optuna_daub"
author = "The optuna_daub developers"
copyright = "2026, the optuna_daub developers"
version = release = optuna_daub.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["build"]

# Pages are Markdown, headings are targets of links; notebooks run at each build.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # no widgets on a page
os.environ["MATPLOTLIBRC"] = os.path.dirname(__file__)

# Docstrings: single backticks are code, arguments have their types in the signature.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autoclass_content = "class"
napoleon_custom_sections = ["Reference", "References"]
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Decision", "HalfWidth")}
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "optuna_daub"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_theme_options = {
    "source_repository": "https://github.com/optuna-daub/optuna-daub",
    "source_branch": "main",
    "source_directory": "docs/",
}

FIRST = {
    "optuna_daub.TrainingSizeObjective": ("build", "X", "y", "scoring", "cv", "fit_params"),
}
"""Arguments that a page shows first; `pages.js` folds all beyond the sixth."""


def setup(app: Sphinx) -> None:
    """Show what is in the sources as a reader of the pages needs it."""
    given: dict[str, list[str]] = {}

    def keep(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        given[name] = [*lines]

    def mend(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        if what in ("attribute", "property"):
            lines[:] = given[name]  # napoleon takes what is before a colon for the type
            return
        if what not in ("class", "function", "method"):
            return
        lines[:] = [line for line in lines if not line.startswith(":param values: must be empty")]
        lines[:] = with_first(lines, FIRST.get(name, ()))
        prose = " ".join(line for line in lines if not line.lstrip().startswith((">>>", "...")))
        listed = references(getattr(sys.modules.get(obj.__module__), "__doc__", None) or "")
        cited = [text for text in listed if text[:3] in prose]
        if cited:
            lines += ["", ".. rubric:: References", "", *[f"* {text}" for text in cited], ""]

    def readable(
        app: Sphinx,
        what: str,
        name: str,
        obj: Any,
        options: Any,
        signature: str | None,
        returns: str | None,
    ) -> tuple[str | None, str | None]:
        def plain(text: str) -> str:
            text = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)
            text = re.sub(r"\*values: (~typing\.)?NoReturn", "*", text)
            return re.sub(r"<function (\w+)>", r"\1", text.replace("<factory>", "..."))

        if what == "class" and signature == "(*args, **kwargs)":
            return "", returns  # of a protocol, which nobody calls
        return signature and plain(signature), returns and plain(returns)

    app.connect("autodoc-process-docstring", keep, priority=0)
    app.connect("autodoc-process-docstring", mend, priority=900)
    app.connect("autodoc-process-signature", readable)


def references(text: str) -> list[str]:
    """Return the numbered references of a module's docstring, each on one line."""
    found = re.findall(r"^\[\d\] .*?(?=^\[\d\]|^$|\Z)", text, re.MULTILINE | re.DOTALL)
    return [" ".join(entry.split()) for entry in found]


def with_first(lines: list[str], names: tuple[str, ...]) -> list[str]:
    """Return a docstring in which the description of these arguments comes before all others."""
    starts = [place for place, line in enumerate(lines) if line.startswith(":param ")]
    if not names or not starts:
        return lines
    behind = range(starts[-1] + 1, len(lines))  # indented lines go on with the last argument
    end = next((place for place in behind if lines[place][:1].strip()), len(lines))
    parts = [lines[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)]
    found = {part[0].split(":")[1].split()[-1].lstrip("*"): part for part in parts}
    missing = [name for name in names if name not in found]
    assert not missing, f"no arguments: {missing}"
    order = [*names, *(name for name in found if name not in names)]
    return [*lines[: starts[0]], *(line for name in order for line in found[name]), *lines[end:]]
