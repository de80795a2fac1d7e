"""Export of the results of a run to formats of other programs."""

from cobre.export.layouts import FORMATS, LAYOUTS, ExportError, export_run

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "export_run"]
