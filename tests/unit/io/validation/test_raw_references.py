"""References to unknown entities are reported even if other fields have wrong types."""

from validation_case import apply_all, findings_after, put

THERMAL = "system/thermals.json:thermals.0"
HYDROS = "system/hydros.json:hydros"
LINE = "system/lines.json:lines.0"


def texts(tmp_path, *changes):
    return [str(problem) for problem in findings_after(tmp_path, apply_all(*changes)).errors]


def test_wrong_types_and_unknown_ids_are_reported_together(tmp_path):
    found = texts(
        tmp_path,
        put(f"{THERMAL}.cost_per_mwh", "cheap"),
        put(f"{THERMAL}.bus_id", 99),
        put(f"{LINE}.target_bus_id", 98),
        put(f"{HYDROS}.1.unit_groups.0.bus_id", 97),
        put(f"{HYDROS}.0.downstream_id", 96),
    )
    for words in (
        "thermal 0 (T), cost_per_mwh:",
        "thermal 0 (T), bus_id: there is no bus 99 (declared: 0, 1)",
        "line 0 (AB), target_bus_id: there is no bus 98",
        "hydro 1 (H1), unit_groups (id 0).bus_id: there is no bus 97",
        "hydro 0 (H0), downstream_id: there is no hydro 96",
    ):
        assert any(words in text for text in found), (words, found)
    assert len(found) == 5


def test_references_to_a_broken_file_are_not_checked(tmp_path):
    found = texts(tmp_path, put("system/buses.json:buses.0.id", "zero"), put(f"{THERMAL}.bus_id", 99))
    assert len(found) == 1, found
    assert "system/buses.json" in found[0]
