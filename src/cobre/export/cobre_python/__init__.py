"""The output layout of cobre-python 0.18, which its scripts and cobre-bridge read.

policy/            manifest.bin and cuts/NNN.bin (FlatBuffers)
training/          convergence, timing and solver tables, dictionaries, metadata.json
simulation/        TABLE/scenario_id=NNNN/data.parquet, paths, scenario_summary, solver tables, metadata.json

A complete part has an empty file `_SUCCESS`. Quantities that our runs do not measure have no row, or are null.
"""
