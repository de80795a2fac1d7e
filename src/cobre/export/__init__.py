"""Results of a run in the forms that other programs read."""

from cobre.export.layouts import LAYOUTS, ExportError, export_run

__all__ = ["LAYOUTS", "ExportError", "export_run"]
