"""Results of a run in the forms that other programs read."""

from cobre.export.layouts import FORMATS, LAYOUTS, ExportError, export_run

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "export_run"]
