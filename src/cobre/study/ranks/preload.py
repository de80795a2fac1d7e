"""Importing this loads what every rank needs, decoders of case files included: the ranks' template imports it."""

from cobre.io.storage.free_memory import prefer_system_allocator

prefer_system_allocator()

import pyarrow.parquet  # noqa: E402, F401

from cobre.io.decoding import json_files  # noqa: E402
from cobre.study import run  # noqa: E402, F401

json_files.build_decoders()
