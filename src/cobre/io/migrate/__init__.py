"""Convert cases of the 0.5 format to the current one."""

from cobre.io.migrate.conversion import migrate_case
from cobre.io.migrate.notes import MigrationReport, Note, NoteKind

__all__ = ["MigrationReport", "Note", "NoteKind", "migrate_case"]
