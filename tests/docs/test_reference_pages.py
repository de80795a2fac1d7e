"""Reference pages are complete, and all pages name only existing files, tests and symbols."""

import re
from dataclasses import fields

import click
import pytest
from case_page import case_page
from command_page import command_page
from config_page import config_page
from environment_page import CONFIGS, environment_page, variables_of
from fault_plans.table import all_plans
from generated_pages import PAGES, generated_page
from snippets import DOCS, ROOT

from cobre.cli.main import main
from cobre.comm.detection import LAUNCHERS
from cobre.comm.testing.case import all_cases
from cobre.io.case_folder.case_files import known_files
from cobre.io.decoding.format_version import FEATURES, INTEGRATED_COLUMN
from cobre.io.findings import CODES, load_all_codes
from cobre.io.input_files.config import ConfigFile

COMM = ROOT / "src" / "cobre" / "comm"
# Macros of native code.
INTERNAL = {"COBRE_INTERFACE_DIGEST", "COBRE_SANITIZE", "COBRE_TABLE", "COBRE_VECTOR", "COBRE_WIDE"}


def test_every_variable_in_the_code_is_documented():
    page = environment_page()
    sources = [*(ROOT / "src" / "cobre").rglob("*.py"), *(ROOT / "native").iterdir()]
    texts = [file.read_text() for file in sources]
    used = {name for text in texts for name in re.findall(r"\bCOBRE_[A-Z_]*[A-Z]\b(?!_)", text)}
    constants = {name for text in texts for name in re.findall(r"^(COBRE_[A-Z_]+) = ", text, re.MULTILINE)}
    assert len(used) > 25
    assert {name for name in used - INTERNAL - constants if f"`{name}`" not in page} == set()


FOREIGN_VARIABLES = {
    "MPI4PY_LIBMPI",
    "MPI4PY_MPIABI",
    "NO_COLOR",
    "OPENBLAS_THREAD_TIMEOUT",
    "PYENV_ROOT",
    "TERM",
    "XDG_CACHE_HOME",
}
ENVIRONMENT_READ = re.compile(r"""(?:environ(?:\.(?:get|pop|setdefault)\(|\[)|getenv\()["']([A-Za-z0-9_]+)""")


def test_own_variables_start_with_cobre():
    of_configs = {name for config in CONFIGS for name in variables_of(config)}
    assert len(of_configs) > 25
    sources = [*(ROOT / "src" / "cobre").rglob("*.py"), *(ROOT / "native").iterdir()]
    read_variables = {name for file in sources for name in ENVIRONMENT_READ.findall(file.read_text())}
    assert "COBRE_WIDE_INSTRUCTIONS" in read_variables
    foreign = {name for name in of_configs | read_variables if not name.startswith(("COBRE_", "SLURM_"))}
    assert foreign - FOREIGN_VARIABLES == set()


def test_variables_of_launchers_are_documented():
    page = environment_page()
    for launcher in LAUNCHERS:
        assert f"`{launcher.rank_variable}` with `{launcher.size_variable}`" in page
    assert "| `COBRE_TCP_COORDINATOR` | a string | required, but on rank 0 |" in page


@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_field_has_environment_variable(config):
    variables = variables_of(config)
    assert {one.name for one in variables.values()} == {one.name for one in fields(config)}
    assert len(variables) == len(fields(config))


def test_documented_defaults_and_meanings_match_code():
    page = environment_page()
    assert "| `COBRE_TCP_PORT` | an integer | `29500` |" in page
    assert (
        "| `COBRE_SHM_NAME` | a string | required | Where ranks meet, the same on all ranks and unique to the run"
        in page
    )
    assert "| `COBRE_TCP_INSECURE` | 1 or 0 | `0` |" in page
    assert "| `COBRE_TCP_TLS_CA` | a string | none | PEM files" in page


def test_every_code_of_validation_is_documented_and_every_documented_code_exists():
    load_all_codes()
    page = (DOCS / "reference" / "findings.md").read_text()
    documented = re.findall(r"^\| `([a-z0-9-]+)` \| (?:error|warning) \|", page, re.MULTILINE)
    assert sorted(documented) == sorted(CODES)


@pytest.mark.parametrize("name", PAGES)
def test_committed_pages_match_code(name):
    committed = (DOCS / "reference" / f"{name}.md").read_text()
    assert committed == generated_page(name), "run `make reference`"


def test_validation_codes_are_kebab_case():
    load_all_codes()
    assert [name for name in CODES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)] == []


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
    field_paths = set(paths(schema, "", schema["$defs"]))
    assert len(field_paths) > 60
    assert {path for path in field_paths if f"`{path}`" not in page} == set()
    assert "| `training.stopping_rules[].limit` | integer >= 1 | required | Number of iterations. |" in page


def test_most_fields_of_the_configuration_have_a_meaning():
    """Check all fields but the tags of a choice and settings without effect."""
    page = config_page()
    rows = [row.split(" | ") for row in page.splitlines() if row.startswith("| `")]
    unexplained = {row[0].removeprefix("| ").strip("`") for row in rows if row[-1].strip() == "|"}
    unexplained -= {
        name
        for name in unexplained
        if re.search(r"\.(method|type|scheme)$|\.solver\.|^upper_bound|\.from$|\.to$", name)
    }
    assert unexplained <= {
        "training.stopping_rules[].tolerance",  # of the rule `gap`, which is rejected
        "training.stopping_rules[].relative_tolerance",
        "training.stopping_rules[].seconds",  # documented by the rule itself
        "training.parallelism.backward_scheduler",
    }


def test_every_file_of_a_case_is_documented():
    page = case_page()
    missing = {name for name in known_files() if f"`{name}`" not in page}
    assert missing == set()
    assert "| `min_storage_hm3` | number | required |" in page
    assert "| `scenarios/load_seasonal_stats.parquet` | **`bus_id`**, **`stage_id`**, `mean_mw`, `std_mw` |" in page


def test_format_specific_features_are_documented():
    lines = case_page().split("## Formats", 1)[1].split("\n## ", 1)[0].splitlines()
    for feature in FEATURES:
        [line] = [line for line in lines if f"| `{feature.file}` | `{feature.fields[0]}`" in line]
        assert f"| {feature.version} | {feature.remedy} |" in line
        assert all(f"`{value}`" in line for value in feature.values if value)
    assert any(INTEGRATED_COLUMN in line for line in lines)


def test_every_command_is_documented():
    page = command_page()
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert f"## cobre {name}\n" in page
        for option in command.params:
            assert all(f"{text}" in page for text in option.opts if text.startswith("--")), (name, option.opts)


class TestTheSpecificationPage:
    """Files, tests, conformance cases and make targets named by the specification page."""

    TEXT = (DOCS / "explanation" / "specification.md").read_text()
    FOLDERS = tuple(f"{folder.name}/" for folder in ROOT.iterdir() if folder.is_dir())

    def test_named_files_exist(self):
        named = set(re.findall(r"`([\w./-]+(?:\.py|\.cpp|\.hpp|\.md|\.toml|/))(?:::\w+)?(?: [^`]*)?`", self.TEXT))
        assert len(named) > 80
        assert {name for name in named if not self.path_of(name).exists()} == set()

    def path_of(self, name):
        """Return the path in the repository or in the communication layer."""
        return ROOT / name if name.startswith(self.FOLDERS) or name == "pyproject.toml" else COMM / name

    def test_named_tests_exist(self):
        named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", self.TEXT))
        assert len(named) > 20
        missing = {(file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text()}
        assert missing == set()

    def test_named_kit_cases_exist(self):
        cases = {*all_cases(), *all_plans()}
        named = set(re.findall(r"`([a-z]+/[a-z_0-9]+)`", self.TEXT))
        assert len(named) > 30
        assert named - cases == set()

    def test_named_make_targets_exist(self):
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        named = set(re.findall(r"`make ([a-z-]+)`", self.TEXT))
        assert named and named <= targets


def test_links_resolve_in_clone():
    """Check links in a plain clone, without a built site."""
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+?)(?:#[\w-]*)?\)", page.read_text()):
            if not re.match(r"https?:", target):
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_decision_is_listed():
    listed = (DOCS / "adr" / "README.md").read_text()
    pages = sorted((DOCS / "adr").glob("0*.md"))
    assert len(pages) >= 17
    for page in pages:
        number, _, title = page.read_text().splitlines()[0].removeprefix("# ").partition(" ")
        assert f"| [{number}]({page.name}) | {title} |" in listed


def test_index_of_decisions_lists_every_page_once_in_order_under_its_title():
    pages = sorted((DOCS / "adr").glob("0*.md"))
    titles = [page.read_text().splitlines()[0].removeprefix(f"# {page.name[:4]} ") for page in pages]
    rows = [f"| [{page.name[:4]}]({page.name}) | {title} |" for page, title in zip(pages, titles, strict=True)]
    index = (DOCS / "adr" / "README.md").read_text().splitlines()
    assert [line for line in index if line.startswith("| [")] == rows
