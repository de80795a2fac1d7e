"""Options of the command line that several commands share: settings of config.json, paths, and workers.

Every setting is written as in the file, with dots between the names: `training.selection.forward_passes`. The changed
settings are checked as those of the file are, and recorded as `config_overrides` in study.json.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from cobre.study.requests import with_iterations
from cobre.wording import MAX_COUNT, MAX_THREADS

Command = TypeVar("Command", bound=Callable[..., Any])


# Numbers on the command line. Messages and help call them integer and number: click's own names are "integer range"
# and "float range".


class IntegerRange(click.IntRange):
    """An integer within limits."""

    name = "integer"


class FiniteRange(click.FloatRange):
    """A number within limits; NaN and infinity, which `click.FloatRange` lets through, are refused."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert to a finite number; fail as click's own types do."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


# The settings behind the short options of `cobre run`. --scenarios asks for a simulation even where the case has none.
_SHORT_OPTIONS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "iterations": lambda count: dict(with_iterations(None, count) or {}),
    "forward_passes": lambda count: {"training.selection.forward_passes": count},
    "seed": lambda seed: {"training.tree_seed": seed},
    "scenarios": lambda count: {
        "simulation.enabled": True,
        "simulation.selection": {"method": "sampled", "num_scenarios": count},
    },
    "no_simulation": lambda _: {"simulation.enabled": False},
    "boundary": lambda path: {"policy.boundary": {"path": str(path.absolute())}},
}


class _RepeatedKeyError(Exception):
    """A repeated key in an object, which config.json may not have either."""


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RepeatedKeyError(key)
        found[key] = value
    return found


class Setting(click.ParamType[tuple[str, Any]]):
    """`NAME=VALUE`: a setting of config.json and its value as JSON; text needs no quotation marks."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the first equals sign; what is not JSON is a text."""
        if isinstance(value, tuple):  # click converts defaults, too
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not all(part.strip() for part in name.split(".")):
            self.fail(f"expected NAME=VALUE, such as training.tree_seed=7, got {value!r}", param, ctx)
        try:
            return name.strip(), json.loads(text, object_pairs_hook=_object_of)
        except _RepeatedKeyError as error:
            self.fail(f"the value of {name.strip()} has the key {error.args[0]!r} twice: keep one of them", param, ctx)
        except ValueError:
            return name.strip(), text
        except RecursionError:
            self.fail(f"the value of {name.strip()} is nested too deeply", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names of settings, and after `=` their fixed values."""
        name, equals, begun = incomplete.partition("=")
        known = dict(_settings())
        if not equals:
            return [CompletionItem(f"{found}=") for found in known if found.startswith(name)]
        return [CompletionItem(f"{name}={text}") for text in known.get(name, ()) if text.startswith(begun)]


set_option = click.option(
    "--set",
    "settings",
    type=Setting(),
    multiple=True,
    help="Change a setting of config.json for this command; VALUE is JSON or text. Can be given several times.",
)


def together(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Combine options and arguments of a command, which its help shows in this order."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


# What `cobre run` does with a case.
study_options = together(
    click.option(
        "--iterations",
        type=IntegerRange(1, MAX_COUNT),
        help="Number of iterations, instead of the case's stopping rules.",
    ),
    click.option(
        "--forward-passes", type=IntegerRange(1, MAX_COUNT), help="Number of sampled paths in each iteration."
    ),
    click.option("--seed", type=IntegerRange(0, 2**63 - 1), help="Seed of the openings."),
    click.option("--scenarios", type=IntegerRange(1, MAX_COUNT), help="Simulate this number of sampled scenarios."),
    click.option("--no-simulation", is_flag=True, help="Train only."),
    set_option,
)


def overrides_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a command line changes, by dotted name.

    Raises click.UsageError where two options set the same setting, or one of them a part of the other.
    """
    overrides: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for option, values in _given(options):
        for name, value in values.items():
            _require_free(name, option, origins)
            origins[name] = option
            overrides[name] = value
    return overrides


def _given(options: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for option, settings in _SHORT_OPTIONS.items():
        if options.get(option) not in (None, False):
            yield f"--{option.replace('_', '-')}", settings(options[option])
    for name, value in options.get("settings", ()):
        yield f"--set {name}", {name: value}


def given_options() -> dict[str, str]:
    """Return the options of the present command line by the setting that each changes, for messages."""
    context = click.get_current_context(silent=True)
    return {} if context is None else {name: option for option, values in _given(context.params) for name in values}


def _require_free(name: str, option: str, origins: Mapping[str, str]) -> None:
    for known, origin in origins.items():
        shorter, longer = sorted((name, known), key=len)
        if longer == shorter or longer.startswith(f"{shorter}."):
            raise click.UsageError(f"{origin} and {option} both change {longer}: give one of them")


def _settings() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the dotted names of all settings, with the texts of their fixed values."""
    from cobre.io.case_folder.case_schemas import schema_of

    schema: Mapping[str, Any] = schema_of("config")
    found: dict[str, list[str]] = {}
    for name, values in _fields(schema, schema, ""):
        found.setdefault(name, []).extend(text for text in values if text not in found.get(name, ()))
    yield from sorted(found.items())


def _fields(schema: Mapping[str, Any], node: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Walk the objects that a node allows; a node without fields of its own is a setting."""
    parts = list(_alternatives(schema, node))
    objects = [part for part in parts if "properties" in part]
    for part in objects:
        for key, inner in part["properties"].items():
            if not key.startswith("$"):
                yield from _fields(schema, inner, f"{prefix}.{key}" if prefix else key)
    if prefix and not objects:
        yield prefix, [text for part in parts for text in _texts(part)]


def _alternatives(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    choices = (*node.get("anyOf", ()), *node.get("oneOf", ()))
    if not choices:
        yield node
    for choice in choices:
        yield from _alternatives(schema, choice)


def _texts(part: Mapping[str, Any]) -> list[str]:
    if part.get("type") == "boolean":
        return ["true", "false"]
    values = part.get("enum", [part["const"]] if "const" in part else [])
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


# The path of a run or of a policy on the command line, which a command only reads.

_MISSING = (FileNotFoundError, NotADirectoryError)  # the command reports these, with what should be there
CASE = click.Path(exists=True, file_okay=False, path_type=Path)


class RunPath(click.Path):
    """A path that may be missing, but can be examined: its name is not too long, nor a link to itself."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse, as a wrong command line, what every look at the path would fail with."""
        try:
            Path(value).stat()
        except _MISSING:
            pass
        except OSError as error:
            self.fail(f"{_short(value)}: {error.strerror}.", param, ctx)
        except ValueError as error:  # a zero byte, from another program
            self.fail(f"{_short(value)}: {error}.", param, ctx)
        return super().convert(value, param, ctx)


class OutputPath(click.Path):
    """The path of an output; an empty text, as from an unset variable, is refused."""

    def __init__(self, *, is_directory: bool = False) -> None:
        super().__init__(path_type=Path)
        self.is_directory = is_directory

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what would be the current folder."""
        if value == "":
            self.fail("the name is empty; the current folder is called '.'", param, ctx)
        if self.is_directory and Path(value).is_file():
            self.fail(f"{_short(value)} is a file; give a directory.", param, ctx)
        return super().convert(value, param, ctx)


def _short(value: Any) -> str:
    name = os.fspath(value)
    return repr(name if len(name) <= 80 else f"{name[:60]}...")


# Backend, workers and threads. The text on `auto` is also in the docstring of `cobre.train`.
AUTO_BACKEND = (
    "auto: as COBRE_COMM_BACKEND says; otherwise as mpiexec, srun or the COBRE_TCP_* or COBRE_SHM_* variables that "
    "started this process say; otherwise shm, or local for one process."
)


class BackendName(click.Choice[str]):
    """A built-in backend, or one that another distribution registers, looked up only when it is named."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept the names of registered backends, too."""
        if value in self.choices:
            return super().convert(value, param, ctx)
        from cobre.comm.errors import InvalidBackendError
        from cobre.comm.factory import registered_names

        registered = registered_names()
        if value in registered:
            return value
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as refused:
            raise refused from InvalidBackendError(value, (*self.choices, *registered))


world_options = together(
    click.option(
        "--workers",
        type=IntegerRange(min=1),
        help="Number of processes. By default one, with a thread per usable core; for scenario trees, and "
        "with --backend shm or tcp, one per usable core, but at most one per forward pass or scenario.",
    ),
    click.option(
        "--backend",
        type=BackendName(["auto", "local", "shm", "tcp", "mpi"]),
        default="auto",
        help=f"How workers communicate. {AUTO_BACKEND}",
    ),
    click.option(
        "--threads",
        type=IntegerRange(min=1, max=MAX_THREADS),
        help="Threads per worker. By default the cores are divided among workers.",
    ),
)
