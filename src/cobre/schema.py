"""Compatibility with cobre-python: export of JSON Schemas of the files of a case."""

from pathlib import Path

__all__ = ["export"]


def export(output_dir: str | Path = ".") -> int:
    """Write one schema for each JSON file of a case into a folder, which is made if need be; returns their number.

    Raises OutputError (an OSError) where nothing can be written.
    """
    from cobre.io.case_folder.case_schemas import write_schemas

    return write_schemas(Path(output_dir))
