"""The documentation: `python -m sphinx --fail-on-warning docs build/docs`."""

import os

import optuna_daub


project = "optuna_daub"
author = "The optuna_daub developers"
copyright = "2026, the optuna_daub developers"
version = release = optuna_daub.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["build"]

# Pages are Markdown, headings are targets of links; notebooks run at each build.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # no widgets on a page

# Docstrings: single backticks are code, arguments have their types in the signature.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autoclass_content = "class"
napoleon_custom_sections = ["Reference", "References"]
napoleon_use_ivar = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "optuna_daub"
html_theme_options = {
    "source_repository": "https://github.com/optuna-daub/optuna-daub",
    "source_branch": "main",
    "source_directory": "docs/",
}
