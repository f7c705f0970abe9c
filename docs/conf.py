"""Settings of the site: ``make docs`` builds it into docs/_build/html."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from site_pages import math_as_mathml, readable_docstring, source_read

import relboltz

project = "relboltz"
author = "The relboltz developers"
copyright = author
version = release = relboltz.__version__
html_title = f"relboltz {release}"

highlight_language = "none"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the words of the docstrings say more

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "a11y-light", "a11y-high-contrast-dark"
copybutton_exclude = ".linenos, .gp, .go"
linkcheck_timeout = 20


def setup(app):
    """Connect the extensions of this site to Sphinx."""
    math_as_mathml(app)
    app.connect("source-read", source_read)
    app.connect("autodoc-process-docstring", readable_docstring)
