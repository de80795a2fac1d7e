"""New cases from others: copies of the templates that ship with Cobre, and copies with changes."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cobre
from cobre.core.file_names import OUTPUT
from cobre.errors import CobreError
from cobre.io.case_folder.case_schemas import SCHEMAS
from cobre.io.decoding.format_version import SCHEMA_ADDRESS
from cobre.io.storage.atomic import new_directory
from cobre.io.storage.confined import named_inside, read_untrusted_text
from cobre.records import dataclass

# Case templates: the examples, as installed with the package or in the source tree.
#
# The examples are of format 0.18 and mean the same in 0.19; a new case says that it is of format 0.19, in each file.

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
    by_name = {template.name: template for template in templates()}
    if name not in by_name:
        raise UnknownTemplateError(f"there is no template `{name}`; choose from {', '.join(by_name)}")
    with new_directory(folder) as fresh:
        _copy_case(by_name[name].folder, fresh)
        for schema, (file, _) in SCHEMAS.items():
            if (fresh / file).is_file():
                _name_schema(fresh / file, SCHEMA_ADDRESS.format(name=schema))


def _copy_case(case: Path, target: Path) -> None:
    """Copy all files but those of results; raises the first error, which `shutil.copytree` gives without a reason."""
    names = [path.name for path in case.iterdir()]
    target.mkdir(exist_ok=True)
    for name in sorted(set(names) - _LEFT_OUT(str(case), names)):
        copy = _copy_case if (case / name).is_dir() else shutil.copy2
        copy(case / name, target / name)


def _name_schema(path: Path, address: str) -> None:
    """Add `$schema` as the first key of an object with others; its lines keep their layout."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{", f'{{\n  "$schema": "{address}",', 1), encoding="utf-8")


def _folders() -> list[Path]:
    for package in cobre.__path__:
        for home in _HOMES:
            folders = [config.parent for config in (Path(package) / home).resolve().glob("*/config.json")]
            if folders:
                return folders
    return []


def _title(folder: Path) -> str:
    try:
        text = (folder / "README.md").read_text(encoding="utf-8")
    except OSError:
        return ""
    return next((line.lstrip("# ").strip() for line in text.splitlines() if line.strip()), "")


# Copies of a case with changes to its JSON files, in the style of JSON Patch (RFC 6902).

OPERATIONS = ("add", "replace", "remove")


class CasePatchError(CobreError, ValueError):
    """A change that cannot be applied; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change: `add` (at the end of a list with `-`), `replace` or `remove` the value at `path` in a file of the case.

    path: names and indices from the root, such as /thermals/0/cost_per_mwh or /thermals/-.
    """

    file: str
    op: str
    path: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.op} {self.path} of {self.file}"


def read_case_file(case: Path, file: str) -> Any:
    """Return the content of a JSON file of a case. Raises CasePatchError."""
    if ".." in Path(file).parts or Path(file).is_absolute():  # the copy is written under the same name
        raise CasePatchError(f"the file {file!r} is outside the case: give its path relative to the case directory")
    path = named_inside(case, file, f"the file {file!r}")
    if path.suffix != ".json":
        raise CasePatchError(f"{file} is not a JSON file; {case} has {', '.join(json_files(case))}")
    try:
        return json.loads(read_untrusted_text(path))
    except FileNotFoundError:
        raise CasePatchError(f"there is no {file}; {case} has {', '.join(json_files(case))}") from None
    except (OSError, ValueError) as error:
        raise CasePatchError(f"{path} cannot be read: {error}") from error


def json_files(case: Path) -> list[str]:
    """Return the JSON files of a case, without those of its results."""
    paths = (path.relative_to(case) for path in sorted(case.rglob("*.json")))
    return [path.as_posix() for path in paths if path.parts[0] != OUTPUT]


def patched_case(case: Path, target: Path, patches: Sequence[Patch]) -> None:
    """Copy a case to the new directory `target` with all changes applied, or write nothing.

    Raises CasePatchError for a change that cannot be applied, WriteError if `target` cannot be written.
    """
    documents: dict[str, Any] = {}
    for patch in patches:
        content = documents[patch.file] if patch.file in documents else read_case_file(case, patch.file)
        documents[patch.file] = _applied(content, patch)
    with new_directory(target) as fresh:
        _copy_case(case, fresh)
        for file, content in documents.items():
            (fresh / file).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _applied(content: Any, patch: Patch) -> Any:
    if patch.op not in OPERATIONS:
        raise CasePatchError(f"{patch}: the operation is one of {', '.join(OPERATIONS)}")
    if not patch.path.startswith("/"):
        raise CasePatchError(f"{patch}: a path must begin with /, such as /thermals/0/name")
    *steps, last = [part.replace("~1", "/").replace("~0", "~") for part in patch.path[1:].split("/")]
    holder = content
    for step in steps:
        holder = _inside(holder, step, patch)
    if isinstance(holder, list):
        _change_list(holder, last, patch)
    elif isinstance(holder, dict):
        _change_object(holder, last, patch)
    else:
        raise CasePatchError(f"{patch}: a plain value has no fields")
    return content


def _inside(holder: Any, step: str, patch: Patch) -> Any:
    if isinstance(holder, list):
        return holder[_list_index(holder, step, patch)]
    if isinstance(holder, Mapping) and step in holder:
        return holder[step]
    members = f"; there are {', '.join(map(str, holder))}" if isinstance(holder, Mapping) else ""
    raise CasePatchError(f"{patch}: there is no {step!r}{members}")


def _list_index(holder: Sequence[Any], step: str, patch: Patch) -> int:
    if not step.isdigit() or int(step) >= len(holder):
        raise CasePatchError(f"{patch}: {step!r} is not an index of a list of {len(holder)} (indices start at 0)")
    return int(step)


def _change_list(holder: list[Any], last: str, patch: Patch) -> None:
    if patch.op == "add":
        at = len(holder) if last in ("-", str(len(holder))) else _list_index(holder, last, patch)
        holder.insert(at, patch.value)
    elif patch.op == "remove":
        del holder[_list_index(holder, last, patch)]
    else:
        holder[_list_index(holder, last, patch)] = patch.value


def _change_object(holder: dict[str, Any], last: str, patch: Patch) -> None:
    if patch.op != "add" and last not in holder:
        raise CasePatchError(f"{patch}: there is no {last!r}; there are {', '.join(holder)}")
    if patch.op == "remove":
        del holder[last]
    else:
        holder[last] = patch.value
