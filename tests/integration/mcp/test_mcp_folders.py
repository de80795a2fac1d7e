"""Folders outside those of the server are neither read nor written."""

import json
import shutil

import pytest

pytest.importorskip("mcp.server")

from assistant import ToolFailedError
from mcp import MCPError

pytestmark = pytest.mark.long


class TestFoldersOfOthers:
    @pytest.mark.parametrize("path", ["../private", "case/../../private", "/etc", "/", "..", ""])
    def test_paths_outside_the_folders_are_refused_by_every_tool(self, server, run, path):
        calls = {
            "validate_case": {"case": path},
            "start_study": {"case": path},
            "study_status": {"job": path},
            "study_result": {"job": path},
            "query_results": {"job": path, "table": "hydros"},
            "stop_study": {"job": path},
            "compare_runs": {"first": "run", "second": path},
        }
        for tool, arguments in calls.items():
            with pytest.raises(ToolFailedError, match=r"outside the folders|path is empty"):
                server.call(tool, arguments)

    def test_nothing_is_written_outside_folders(self, server, place):
        before = sorted(place.rglob("*"))
        for arguments in ({"output": "../private/out"}, {"output": "x/../../out"}, {"warm_start": "../private"}):
            with pytest.raises(ToolFailedError, match="outside the folders"):
                server.start_study(case="case", **arguments)
        assert sorted(place.rglob("*")) == before

    def test_links_out_of_folders_are_not_followed(self, server, studies, place):
        (studies / "links").mkdir()
        (studies / "links" / "folder").symlink_to(place / "private")
        (studies / "links" / "summary.json").symlink_to(place / "private" / "summary.json")
        try:
            for job in ("links", "links/folder"):
                with pytest.raises(ToolFailedError, match="outside the folders"):
                    server.study_result(job=job)
            with pytest.raises(ToolFailedError, match="outside the folders"):
                server.start("links/folder/out")
            assert not (place / "private" / "out").exists()
        finally:
            shutil.rmtree(studies / "links")

    @pytest.mark.parametrize(
        "policy", [{"path": "../../../private/policy"}, {"boundary": {"path": "../../private/policy.bin"}}]
    )
    def test_paths_in_case_do_not_leave_folders(self, server, studies, place, policy):
        case = studies / f"leading-{next(iter(policy))}"
        shutil.copytree(studies / "case", case)
        config = json.loads((case / "config.json").read_text())
        (case / "config.json").write_text(json.dumps(config | {"policy": policy}))

        with pytest.raises(ToolFailedError, match=r"policy\..*outside the folders"):
            server.start_study(case=str(case))
        assert [path.name for path in (place / "private").iterdir()] == ["summary.json"]

    def test_warm_start_policy_outside_folders_is_refused(self, server, studies, place):
        (studies / "warm" / "policy").mkdir(parents=True)
        (studies / "warm" / "policy" / "policy.bin").symlink_to(place / "private" / "summary.json")
        try:
            for path in ("warm", "warm/policy", "warm/policy/policy.bin"):
                with pytest.raises(ToolFailedError, match="outside the folders"):
                    server.start_study(case="case", output="warmed", warm_start=path)
        finally:
            shutil.rmtree(studies / "warm")

    def test_paths_in_run_files_do_not_leave_folders(self, server, run, studies, place):
        """Check paths in study.json and in manifests; /dev/zero there does not hang the server."""
        for number, (file, change) in enumerate(
            (
                ("study.json", lambda content: content["config"]["policy"].update(path=str(place / "private"))),
                ("simulation/manifest.json", lambda content: content["tables"]["hydros"].update(file="/dev/zero")),
            )
        ):
            copy = studies / f"changed-{number}"
            shutil.copytree(studies / "run", copy)
            content = json.loads((copy / file).read_text())
            change(content)
            (copy / file).write_text(json.dumps(content))
            with pytest.raises(ToolFailedError, match="leads out of"):
                server.compare_runs(first="run", second=copy.name)
            shutil.rmtree(copy)

    def test_resources_do_not_leave_folders(self, server, place):
        for uri in (
            "cobre://runs/studies/../private/summary.json",
            "cobre://runs/studies/%2e%2e/private/summary.json",
            f"cobre://runs/studies/{place}/private/summary.json",
            "cobre://runs/private/./summary.json",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError):
                server.read(uri)
