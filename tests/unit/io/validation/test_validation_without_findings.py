"""The sound case has no findings: those of other tests are due to their changes."""

from validation_case import findings_after

from cobre.io.findings import Layer


def test_valid_case_has_no_findings(tmp_path):
    problems = findings_after(tmp_path, lambda documents, tables: None)
    assert [str(problem) for problem in problems] == []


def test_later_layers_check_what_does_not_depend_on_a_broken_reference(tmp_path):
    def corrupt(documents, tables):
        documents["system/lines.json"]["lines"][0]["target_bus_id"] = 7
        documents["system/thermals.json"]["thermals"][0]["bus_id"] = 8
        documents["system/thermals.json"]["thermals"][0]["generation"]["min_mw"] = 1e6

    problems = findings_after(tmp_path, corrupt)
    texts = [str(problem) for problem in problems.errors]
    assert [problem.layer for problem in problems.errors[:2]] == [Layer.REFERENCES] * 2
    assert any("thermals.json, thermal 0 (T), generation.min_mw: is 1e+06, above" in text for text in texts), texts
