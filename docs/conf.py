"""The site: `make docs` builds it into docs/_build/html, to be opened from the file system."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT / "tools")]

import adafw  # noqa: E402

project = "adafw"
author = "The adafw developers"
copyright = "The adafw developers"
version = release = adafw.__version__

extensions = [
    "commands",
    "docstrings",
    "mathml",
    "reference",
    "verdicts",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext", "pictures", "gallery/**/*.md5", "**sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = False
default_role = "code"

# MyST: the pages are written for GitHub, too.
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.xref_missing_inventory"]

# Code: types stand in the signature, docstrings come through _ext/docstrings.py.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
viewcode_line_numbers = True
pygments_style = "tango"

# Formulas need no script (_ext/mathml.py).
html_math_renderer = "mathml"

# The gallery: every example runs when the site is built, an error ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(__init__|support_vector)\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # their page would fetch scripts
    "show_signature": False,
    "min_reported_time": 0,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "plot_gallery": "True",
    "doc_module": ("adafw",),
    "reset_modules": ("matplotlib",),
    "thumbnail_size": (480, 240),
    "default_thumb_file": None,
}

html_theme = "pydata_sphinx_theme"
html_title = f"adafw {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # would be fetched, which pages from a file system may not do
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "search": []}
html_theme_options = {
    "logo": {"text": f"adafw <small>{release}</small>"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "back_to_top_button": True,
}


def setup(app):
    """Pages of examples that are no longer there would be read again."""

    def sweep(app, config):
        for page in (ROOT / "docs" / "gallery").glob("plot_*.rst"):
            if not (ROOT / "examples" / f"{page.stem}.py").is_file():
                page.unlink()

    app.connect("config-inited", sweep)
