"""The reference pages say everything that the code knows, and the other pages name nothing that is not there."""

import re
from dataclasses import fields

import click
import pytest
from command_page import command_page
from config_page import config_page
from environment_page import CONFIGS, environment_page, variables_of
from snippets import DOCS, ROOT

from cobre.cli.main import main
from cobre.io.config_records import ConfigFile

COMM = ROOT / "src" / "cobre" / "comm"
INTERNAL = {"COBRE_TABLE", "COBRE_VECTOR", "COBRE_SANITIZE"}  # macros of native code


def test_every_variable_in_the_code_is_documented():
    page = environment_page()
    sources = [*(ROOT / "src" / "cobre").rglob("*.py"), *(ROOT / "native").iterdir()]
    used = {name for file in sources for name in re.findall(r"\bCOBRE_[A-Z_]*[A-Z]\b(?!_)", file.read_text())}
    assert len(used) > 25
    assert {name for name in used - INTERNAL if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("config", CONFIGS)
def test_every_field_has_a_variable(config):
    found = variables_of(config)
    assert {one.name for one in found.values()} == {one.name for one in fields(config)}
    assert len(found) == len(fields(config))


def test_variables_have_their_true_defaults_and_meanings():
    page = environment_page()
    assert "| `COBRE_TCP_PORT` | an integer | `29500` |" in page
    assert "| `COBRE_SHM_NAME` | a text | required | Of the POSIX segment" in page
    assert "| `COBRE_TCP_INSECURE` | 1 or 0 | `0` |" in page
    assert "| `COBRE_TCP_TLS_CA` | a text | none | PEM files" in page


def test_every_field_of_the_configuration_is_documented():
    page = config_page()

    def paths(schema, prefix, definitions):
        for name, part in schema.get("properties", {}).items():
            path = f"{prefix}.{name}" if prefix else name
            if prefix:
                yield path
            for inner, suffix in objects(part, definitions):
                yield from paths(inner, path + suffix, definitions)

    def objects(part, definitions, suffix=""):
        if "$ref" in part:
            yield definitions[part["$ref"].rsplit("/", 1)[1]], suffix
        for choice in part.get("anyOf", []) + part.get("oneOf", []):
            yield from objects(choice, definitions, suffix)
        if isinstance(part.get("items"), dict):
            yield from objects(part["items"], definitions, "[]")

    schema = ConfigFile.model_json_schema(by_alias=True)
    wanted = set(paths(schema, "", schema["$defs"]))
    assert len(wanted) > 60
    assert {path for path in wanted if f"`{path}`" not in page} == set()
    assert "| `training.stopping_rules[].limit` | integer >= 1 | required |" in page


def test_every_command_is_documented():
    page = command_page()
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert f"## cobre {name}\n" in page
        for option in command.params:
            assert all(f"{text}" in page for text in option.opts if text.startswith("--")), (name, option.opts)


def test_the_specification_page_names_files_that_exist():
    text = (DOCS / "explanation" / "specification.md").read_text()
    named = set(re.findall(r"`([\w./-]+(?:\.py|\.cpp|\.md|\.toml|/))(?: [^`]*)?`", text))
    assert len(named) > 40
    assert {name for name in named if not (ROOT / name).exists() and not (COMM / name).exists()} == set()


def test_links_lead_somewhere():
    """Also those that the site resolves: a reader of the repository follows them too."""
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+?)(?:#[\w-]*)?\)", page.read_text()):
            if not re.match(r"https?:", target):
                generated = {"command-line.md", "configuration.md", "environment.md"}
                assert (page.parent / target).exists() or target.rsplit("/", 1)[-1] in generated, f"{page}: {target}"
