"""Modules that every rank needs, case decoders included: imported by the process that ranks are forked from."""

from cobre.io.storage.allocators import prefer_system_allocator

prefer_system_allocator()  # before pyarrow is loaded

import pyarrow.parquet  # noqa: E402, F401

from cobre.io.decoding import json_records  # noqa: E402
from cobre.study import run  # noqa: E402, F401

json_records.build_decoders()
