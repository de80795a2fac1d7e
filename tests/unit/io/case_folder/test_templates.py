"""New cases from templates are of format 0.19, and the same studies as the examples, which are of format 0.18."""

import json
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

import cobre
from cobre.io.case_folder.case_schemas import SCHEMAS
from cobre.io.case_folder.new_cases import create_case, templates
from cobre.io.decoding.format_version import SCHEMA_ADDRESS

TEMPLATES = {template.name: template.folder for template in templates()}


@pytest.fixture(scope="module", params=sorted(TEMPLATES))
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("new") / "case"
    create_case(request.param, folder)
    return TEMPLATES[request.param], folder


def test_new_case_is_valid_in_format_019(pair):
    report = cobre.validate(pair[1])
    assert str(report.format) == "format 0.19 ($schema of config.json)"
    assert report.errors == ()
    assert report.warnings == cobre.validate(pair[0]).warnings


def test_new_files_only_add_their_schema(pair):
    example, folder = pair
    names = {file: name for name, (file, _) in SCHEMAS.items()}
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.json"))
    assert files == sorted(path.relative_to(example) for path in example.rglob("*.json"))
    for file in files:
        content = json.loads((folder / file).read_text())
        assert next(iter(content)) == "$schema"
        assert content.pop("$schema") == SCHEMA_ADDRESS.format(name=names[str(file)])
        assert content == json.loads((example / file).read_text())


def test_new_case_states_settings_whose_defaults_differ_between_formats(pair):
    """So that what the format changes is only what a user does not see in the files."""
    old, new = map(cobre.load_case, pair)
    assert new.config.modeling == old.config.modeling
    assert replace(new.config.training, cut_selection=old.config.training.cut_selection) == old.config.training
    assert new.format_version == "0.19"


def test_new_case_runs_to_the_bits_of_the_example(tmp_path):
    create_case("two_reservoirs", tmp_path / "case")
    new, old = (
        cobre.train(case, iterations=3, backend="local") for case in (tmp_path / "case", TEMPLATES["two_reservoirs"])
    )
    assert new.lower_bound == old.lower_bound
    assert new.digest == old.digest


def test_full_disk_is_reported_once_and_leaves_nothing(tmp_path):
    program = textwrap.dedent(f"""
        import resource, signal
        from pathlib import Path
        from cobre.io.case_folder.new_cases import create_case
        from cobre.io.storage.atomic import WriteError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            create_case("two_reservoirs", Path({str(tmp_path / "case")!r}))
        except WriteError as error:
            print(error)
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == (
        f"cannot write {tmp_path / 'case'}: the file would exceed the size limit "
        "(raise the limit (ulimit -f) or write elsewhere)\n"
    )
    assert list(tmp_path.iterdir()) == []
