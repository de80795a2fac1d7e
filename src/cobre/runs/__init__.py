"""Readers of output directories: file names, events, state, tables, comparison, explanation.

Everything that shows a run (command line, live view, report, assistant server) stands on this package; `cobre.study`,
which writes those files, takes their names and formats from here.
"""
