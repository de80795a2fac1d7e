"""Findings that are alike share a line."""

from cobre.io.findings.problems import CaseProblem, Layer, lines_of


def observation(hydro_id, value):
    message = f"is {value}: taken as incremental inflow"
    return CaseProblem(
        Layer.MEANING, "initial_conditions.json", f"hydro {hydro_id} (P{hydro_id})", "value_m3s", message
    )


def test_many_similar_problems_share_a_line_with_count_and_examples():
    problems = [observation(hydro_id, -1.5 * hydro_id) for hydro_id in (1, 2, 2, 3, 4, 5, 6, 7)]
    (line,) = lines_of(problems)
    assert line == (
        "initial_conditions.json, hydro 1 (P1), value_m3s: is -1.5: taken as incremental inflow; "
        "7 more like it, at hydro 2 (P2), hydro 3 (P3), hydro 4 (P4), hydro 5 (P5) and 2 others"
    )


def test_few_similar_problems_keep_their_own_lines():
    problems = [observation(hydro_id, -1.0) for hydro_id in (1, 2, 3)]
    assert lines_of(problems) == [str(problem) for problem in problems]


def test_lists_of_numbers_are_grouped_other_files_and_fields_are_not():
    seasons = [
        CaseProblem(Layer.MEANING, "a", f"hydro {n}", "", f"season{'s' * (n > 1)} {', '.join('123'[:n])}: odd")
        for n in (1, 2, 3)
    ]
    others = [
        CaseProblem(Layer.MEANING, "b", "hydro 9", "", "season 1: odd"),
        CaseProblem(Layer.MEANING, "a", "", "x", "odd"),
    ]
    assert len(lines_of([*seasons, seasons[0], *others])) == 3
