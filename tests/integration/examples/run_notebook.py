"""Execute a notebook in its own folder, without a browser: NOTEBOOK and where the executed one goes."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

source, target = map(Path, sys.argv[1:])
notebook = nbformat.read(source, as_version=4)
NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(source.parent)}}).execute()
nbformat.write(notebook, target)
