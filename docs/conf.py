"""How the site is built: `make docs`. Nothing is fetched while it is built or read."""

import sys
from pathlib import Path

import cobre

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Cobre"
author = "The Cobre in Python authors"
project_copyright = "The Cobre in Python authors"
release = version = cobre.__version__

extensions = ["myst_parser", "source_pages", "generated_pages"]
exclude_patterns = ["_build", "_extensions"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # console blocks show output that no lexer knows

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
highlight_language = "text"
smartquotes_action = "qe"  # not dashes: two of them begin an option

html_theme = "furo"
html_title = f"Cobre {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
