"""Options of the command line that several commands share: settings of config.json, paths, and workers.

A setting is named by its path in the file, joined by dots: `training.selection.forward_passes`. Changed settings are
checked like those of the file, and recorded as `config_overrides` in study.json.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from cobre.limits import MAX_COUNT, MAX_THREADS
from cobre.study.requests import with_iterations

Command = TypeVar("Command", bound=Callable[..., Any])


# Numbers on the command line. Messages and help call them integer and number: click's own names are "integer range"
# and "float range".


class IntegerRange(click.IntRange):
    """An integer within limits."""

    name = "integer"


class FiniteRange(click.FloatRange):
    """A number within limits; NaN and infinity, which `click.FloatRange` accepts, are errors."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert to a finite number; fail as click's own types do."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


# The settings behind the short options of `cobre run`. --scenarios also enables the simulation.
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
    """A repeated key in an object, which is an error in config.json as well."""


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise _RepeatedKeyError(key)
        values[key] = value
    return values


class Setting(click.ParamType[tuple[str, Any]]):
    """A setting of config.json as `NAME=VALUE`; the value is JSON, or text without quotation marks."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the first equals sign; a value that is not JSON is text."""
        if isinstance(value, tuple):  # click also converts defaults
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
        """Complete names of settings, and after `=` the values of enumerations and flags."""
        name, equals, prefix = incomplete.partition("=")
        fixed_values = dict(_settings_with_fixed_values())
        if not equals:
            return [CompletionItem(f"{setting}=") for setting in fixed_values if setting.startswith(name)]
        return [CompletionItem(f"{name}={text}") for text in fixed_values.get(name, ()) if text.startswith(prefix)]


set_option = click.option(
    "--set",
    "settings",
    type=Setting(),
    multiple=True,
    help="Change a setting of config.json for this command; VALUE is JSON or text. Can be given several times.",
)


def combine_options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Combine decorators of options and arguments; the help shows them in this order."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


# Options of `cobre run` that change settings.
study_options = combine_options(
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

    Raises click.UsageError if two options change the same setting, or one of them a part of the other's.
    """
    overrides: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for option, values in _settings_by_option(options):
        for name, value in values.items():
            _require_free(name, option, origins)
            origins[name] = option
            overrides[name] = value
    return overrides


def _settings_by_option(options: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for option, settings in _SHORT_OPTIONS.items():
        if options.get(option) not in (None, False):
            yield f"--{option.replace('_', '-')}", settings(options[option])
    for name, value in options.get("settings", ()):
        yield f"--set {name}", {name: value}


def options_by_setting() -> dict[str, str]:
    """Return the options of the current command line by the setting that each changes, for messages."""
    context = click.get_current_context(silent=True)
    changes = () if context is None else _settings_by_option(context.params)
    return {name: option for option, values in changes for name in values}


def _require_free(name: str, option: str, origins: Mapping[str, str]) -> None:
    for other, origin in origins.items():
        shorter, longer = sorted((name, other), key=len)
        if longer == shorter or longer.startswith(f"{shorter}."):
            raise click.UsageError(f"{origin} and {option} both change {longer}: give one of them")


def _settings_with_fixed_values() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the dotted names of all settings, with the values of enumerations and flags."""
    from cobre.io.case_folder.case_schemas import schema_of

    schema: Mapping[str, Any] = schema_of("config")
    values_of: dict[str, list[str]] = {}
    for name, values in _fields(schema, schema, ""):
        values_of.setdefault(name, []).extend(text for text in values if text not in values_of.get(name, ()))
    yield from sorted(values_of.items())


def _fields(schema: Mapping[str, Any], node: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Walk the objects that a node of the schema allows; a node without fields is a setting."""
    alternatives = list(_alternatives(schema, node))
    objects = [alternative for alternative in alternatives if "properties" in alternative]
    for alternative in objects:
        for key, child in alternative["properties"].items():
            if not key.startswith("$"):
                yield from _fields(schema, child, f"{prefix}.{key}" if prefix else key)
    if prefix and not objects:
        yield prefix, [text for alternative in alternatives for text in _fixed_values(alternative)]


def _alternatives(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    choices = (*node.get("anyOf", ()), *node.get("oneOf", ()))
    if not choices:
        yield node
    for choice in choices:
        yield from _alternatives(schema, choice)


def _fixed_values(node: Mapping[str, Any]) -> list[str]:
    if node.get("type") == "boolean":
        return ["true", "false"]
    values = node.get("enum", [node["const"]] if "const" in node else [])
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


_MISSING_ERRORS = (FileNotFoundError, NotADirectoryError)  # reported by the command, with the expected content
CASE = click.Path(exists=True, file_okay=False, path_type=Path)


class RunPath(click.Path):
    """The path of a run or policy, which may be missing; names too long or links to themselves are usage errors."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fail for a path that cannot be examined."""
        try:
            Path(value).stat()
        except _MISSING_ERRORS:
            pass
        except OSError as error:
            self.fail(f"{_shorten(value)}: {error.strerror}.", param, ctx)
        except ValueError as error:  # a zero byte, from another program
            self.fail(f"{_shorten(value)}: {error}.", param, ctx)
        return super().convert(value, param, ctx)


class OutputPath(click.Path):
    """The path of an output; empty text, as from an unset variable, is an error."""

    def __init__(self, *, is_directory: bool = False) -> None:
        super().__init__(path_type=Path)
        self.is_directory = is_directory

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fail for an empty path, which would be the current folder, and for a file instead of a directory."""
        if value == "":
            self.fail("the name is empty; the current folder is called '.'", param, ctx)
        if self.is_directory and Path(value).is_file():
            self.fail(f"{_shorten(value)} is a file; give a directory.", param, ctx)
        return super().convert(value, param, ctx)


def _shorten(value: Any) -> str:
    name = os.fspath(value)
    return repr(name if len(name) <= 80 else f"{name[:60]}...")


# Backend, workers and threads. The text on `auto` is also in the docstring of `cobre.train`.
AUTO_BACKEND = (
    "auto: that of COBRE_COMM_BACKEND; otherwise that of mpiexec, srun or the COBRE_TCP_* or COBRE_SHM_* variables "
    "that started this process; otherwise shm, or local for one process."
)


class BackendName(click.Choice[str]):
    """A built-in backend, or one registered by another distribution, which is only looked up by name."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Also accept the names of registered backends."""
        if value in self.choices:
            return super().convert(value, param, ctx)
        from cobre.comm.errors import InvalidBackendError
        from cobre.comm.factory import registered_names

        registered = registered_names()
        if value in registered:
            return value
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise error from InvalidBackendError(value, (*self.choices, *registered))


world_options = combine_options(
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
