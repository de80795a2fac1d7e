"""Convert cases of format 0.5 to 0.18, and those of 0.18 to 0.19."""

from cobre.io.migrate.conversion import migrate_case
from cobre.io.migrate.old_case import MigrationReport, Note, NoteKind
from cobre.io.migrate.to_019 import migrate_to_019

__all__ = ["MigrationReport", "Note", "NoteKind", "migrate_case", "migrate_to_019"]
