"""Case templates: the examples, as installed with the package or in the source tree.

The examples are of format 0.18 and mean the same in 0.19; a new case says that it is of format 0.19, in each file.
"""

import shutil
from pathlib import Path

import cobre
from cobre.core.file_names import OUTPUT
from cobre.errors import CobreError
from cobre.io.case_folder.case_schemas import SCHEMAS
from cobre.io.decoding.format_version import SCHEMA_ADDRESS
from cobre.io.storage.atomic import new_directory
from cobre.records import dataclass

_HOMES = (Path("templates"), Path("../../examples"))  # installed; in a source tree
_LEFT_OUT = shutil.ignore_patterns(OUTPUT, "*.partial", "__pycache__")


class UnknownTemplateError(CobreError):
    """An unknown template; the message lists the known ones."""

    remedy = "choose one of the templates that the message lists"


@dataclass(frozen=True, slots=True)
class Template:
    """A case that can be copied; `title` is the first line of its README."""

    name: str
    title: str
    folder: Path


def templates() -> tuple[Template, ...]:
    """Return the case templates that ship with Cobre, sorted by name."""
    return tuple(Template(folder.name, _title(folder), folder) for folder in sorted(_folders()))


def create_case(name: str, folder: Path) -> None:
    """Write a template as a case of format 0.19 into a new or empty directory, completely or not at all.

    Raises UnknownTemplateError, and WriteError if the directory cannot be written.
    """
    known = {template.name: template for template in templates()}
    if name not in known:
        raise UnknownTemplateError(f"there is no template `{name}`; choose from {', '.join(known)}")
    with new_directory(folder) as fresh:
        shutil.copytree(known[name].folder, fresh, ignore=_LEFT_OUT, dirs_exist_ok=True)
        for schema, (file, _) in SCHEMAS.items():
            if (fresh / file).is_file():
                _name_schema(fresh / file, SCHEMA_ADDRESS.format(name=schema))


def _name_schema(path: Path, address: str) -> None:
    """Add `$schema` as the first key of an object with others; its lines keep their layout."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{", f'{{\n  "$schema": "{address}",', 1), encoding="utf-8")


def _folders() -> list[Path]:
    for package in cobre.__path__:
        for home in _HOMES:
            found = [config.parent for config in (Path(package) / home).resolve().glob("*/config.json")]
            if found:
                return found
    return []


def _title(folder: Path) -> str:
    try:
        text = (folder / "README.md").read_text(encoding="utf-8")
    except OSError:
        return ""
    return next((line.lstrip("# ").strip() for line in text.splitlines() if line.strip()), "")
