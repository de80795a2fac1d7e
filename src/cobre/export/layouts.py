"""The layouts in which a run can be exported, by name."""

from collections.abc import Callable, Mapping
from pathlib import Path

from cobre.export.source import ExportError, RunSource
from cobre.io.atomic import new_directory
from cobre.io.foreign_file import ForeignFileError
from cobre.io.output.manifest import ResultsError

__all__ = ["LAYOUTS", "ExportError", "export_run"]

Writer = Callable[[RunSource, Path], None]


def _cobre_python(source: RunSource, folder: Path) -> None:
    from cobre.export.cobre_python.layout import write_layout  # heavy, and only for this layout

    write_layout(source, folder)


LAYOUTS: Mapping[str, Writer] = {"cobre-python": _cobre_python}


def export_run(
    run: str | Path, output: str | Path, layout: str = "cobre-python", case: str | Path | None = None
) -> Path:
    """Write the results of the run in the directory `run` to the new directory `output`, and give its path.

    layout: one of `LAYOUTS`. case: where the case of the run lies, when it was moved.

    Raises ExportError for a run that is not whole, and WriteError when `output` cannot be written.
    """
    if layout not in LAYOUTS:
        raise ExportError(f"{layout!r} is no layout: there is {', '.join(LAYOUTS)}")
    folder = Path(run)
    if not folder.is_dir():
        raise ExportError(f"{folder} is not the output directory of a run")
    source = RunSource(folder, None if case is None else Path(case))
    with new_directory(Path(output), is_flushed=False) as target:
        try:
            LAYOUTS[layout](source, target)
        except (ResultsError, ForeignFileError) as error:  # an OSError, but none of the directory that is being written
            raise ExportError(str(error)) from error
    return Path(output)
