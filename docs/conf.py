"""How the site is built: `make docs`. Nothing is fetched while it is built or read."""

import sys
from pathlib import Path

import cobre

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Cobre"
author = "The Cobre in Python authors"
project_copyright = "The Cobre in Python authors"
release = version = cobre.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "source_pages",
    "python_reference",
]
exclude_patterns = ["_build", "_extensions"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures, most of them of other libraries
suppress_warnings = ["misc.highlighting_failure"]  # console blocks show output that no lexer knows

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
highlight_language = "text"
smartquotes_action = "qe"  # smartquotes would turn the -- of options into a dash

default_role = "code"  # docstrings write names as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = "$ "  # a console block is copied as its commands, without prompts and output

html_theme = "furo"
html_title = f"Cobre {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
