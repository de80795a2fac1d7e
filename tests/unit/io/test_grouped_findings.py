"""Findings that are alike share a line."""

from cobre.io.findings import Finding, IdList, Part, about, code_named, lines_of


def observation(hydro_id, value):
    subject = (Part("hydro", hydro_id, f"P{hydro_id}"),)
    return Finding(
        code_named("negative-observation"), "initial_conditions.json", subject, "value_m3s", {"value": value}
    )


def test_many_similar_findings_share_a_line_with_count_and_examples():
    findings = [observation(hydro_id, -1.5 * hydro_id) for hydro_id in (1, 2, 2, 3, 4, 5, 6, 7)]
    (line,) = lines_of(findings)
    assert line == (
        "initial_conditions.json, hydro 1 (P1), value_m3s: is -1.5: taken as incremental inflow, which may be negative"
        "; 7 more like it, at hydro 2 (P2), hydro 3 (P3), hydro 4 (P4), hydro 5 (P5) and 2 others"
    )


def test_few_similar_findings_keep_their_own_lines():
    findings = [observation(hydro_id, -1.0) for hydro_id in (1, 2, 3)]
    assert lines_of(findings) == [str(finding) for finding in findings]


def test_findings_of_one_code_in_one_field_are_grouped_for_any_values():
    code = code_named("statistics-missing")

    def missing(file, field, *stages):
        return Finding(code, file, about("hydro", len(stages)), field, {"value": IdList(stages, "stage")})

    alike = [missing("a", "x[0].id", 1), missing("a", "x[7].id", 1, 2), missing("a", "x (id 3).id", 1, 2, 3)]
    others = [missing("b", "x[0].id", 1), missing("a", "y", 1)]
    assert len(lines_of([*alike, alike[0], *others])) == 3


def test_reasons_of_other_modules_are_kept_apart():
    code = code_named("noise-model")
    findings = [Finding(code, "a", (), "", {"reason": f"reason {number}"}) for number in range(5)]
    assert len(lines_of(findings)) == 5
