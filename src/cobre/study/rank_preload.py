"""Importing this loads what every rank needs, decoders of case files included: the ranks' template imports it."""

import pyarrow.parquet  # noqa: F401

from cobre.io import json_files
from cobre.study import run  # noqa: F401

json_files.build_decoders()
