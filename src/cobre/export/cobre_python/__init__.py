"""The output layout of cobre-python 0.18 and novomodelo 0.19, which their scripts and bridges read.

policy/            manifest.bin and cuts/NNN.bin (FlatBuffers)
training/          convergence, timing and solver tables, dictionaries, metadata.json
simulation/        TABLE/scenario_id=NNNN/data.parquet, paths, scenario_summary, solver tables, metadata.json

A complete part has an empty file `_SUCCESS`. Quantities that our runs do not measure have no row, or are null.
"""
