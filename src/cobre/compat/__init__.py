"""Interfaces and table layouts of cobre-python, as thin adapters over `cobre.study` and `cobre.runs`.

`cobre.Study` is here; `cobre.run`, `cobre.results` and `cobre.schema` use it.
"""
