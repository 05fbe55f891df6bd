"""Sphinx: how the pages of docs/ become a site. docs/pages.py calls it."""

from importlib.metadata import version as version_of

project = "npumake"
author = "the npumake authors"
version = release = version_of("npumake")
copyright = f"2026, {author}"

extensions = ["myst_parser"]
exclude_patterns = ["site"]
# A page may leave out a level of headings.
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # the anchors that a link to a heading uses on GitHub
highlight_language = "text"

html_theme = "furo"
html_title = "npumake"
html_static_path = ["static"]
html_css_files = ["npumake.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#4cc38a", "color-brand-content": "#4cc38a"},
}
