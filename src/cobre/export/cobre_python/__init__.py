"""The layout of cobre-python 0.18: what its scripts and cobre-bridge look for in an output directory.

policy/            manifest.bin and cuts/NNN.bin (FlatBuffers)
training/          convergence, timing and solver tables, dictionaries, metadata.json
simulation/        TABLE/scenario_id=NNNN/data.parquet, paths, scenario_summary, solver tables, metadata.json

A part that is whole has an empty file `_SUCCESS`. What our runs do not count has no row, or is null.
"""
