"""Settings of the documentation site, which `python -m scripts.docs` builds with Sphinx."""

from importlib.metadata import version as installed
from pathlib import Path

from pygments.lexers.special import TextLexer
from scripts.docs import navigation, search_words
from sphinx.application import Sphinx

project = "Conspectus"
version = release = installed("conspectus")
copyright = "the Conspectus authors"

extensions = ["myst_parser"]
exclude_patterns = ["_static"]
myst_heading_anchors = 4
# Examples may be cut, and signatures are no whole programs.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = f"Conspectus {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_favicon = "_static/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b5e9e", "color-brand-content": "#1b5e9e"},
    "dark_css_variables": {"color-brand-primary": "#8ab8f0", "color-brand-content": "#8ab8f0"},
}
# Signatures of many parameters have one a line.
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"


def setup(app: Sphinx) -> None:
    """Show diagrams as their text, make the navigation once, and let the search know what people type."""
    app.add_lexer("mermaid", TextLexer)
    navigation.connect(app)
    search_words.connect(app)
