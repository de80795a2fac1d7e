"""Rules of validation: what they need, how they are run, and the codes and helpers that several of them share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.core.case import ABSENT_ID, Case, Table
from cobre.core.file_names import (
    BUSES_FILE,
    CONTRACTS_FILE,
    HYDROS_FILE,
    LINES_FILE,
    SOURCES_FILE,
    STATIONS_FILE,
    THERMALS_FILE,
)
from cobre.io.findings import Finding, Findings, Layer, Part, Subject, error_code
from cobre.io.input_files.table_formats import OVERRIDE_TABLES, PRODUCTION_TABLES, SCENARIO_TABLES
from cobre.records import dataclass

# Inputs by the names of their files. Tables by their field in the case.

SYSTEM = (BUSES_FILE, LINES_FILE, HYDROS_FILE, THERMALS_FILE, SOURCES_FILE, STATIONS_FILE, CONTRACTS_FILE)
SCENARIOS = {name: form.file for name, form in SCENARIO_TABLES.items()}
OVERRIDES = {name: form.file for name, form in OVERRIDE_TABLES.items()}
PRODUCTIONS = {name: form.file for name, form in PRODUCTION_TABLES.items()}

Check = Callable[[Case, Findings], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of a case, and the inputs that it needs. It must not raise if it gets them.

    decoded: inputs that must have been decoded. error_free: inputs in which, too, no earlier group of rules found an
    error, because the rule follows their references. iterated: inputs it loops over; an undecodable one is treated as
    empty.
    """

    check: Check
    decoded: frozenset[str]
    error_free: frozenset[str]
    iterated: frozenset[str]

    @property
    def inputs(self) -> frozenset[str]:
        """All inputs that the rule may look at."""
        return self.decoded | self.error_free | self.iterated

    def __call__(self, case: Case, findings: Findings) -> None:
        """Check a case; add what is wrong to `findings`."""
        self.check(case, findings)


def rule(*decoded: str, error_free: Iterable[str] = (), iterated: Iterable[str] = ()) -> Callable[[Check], Rule]:
    """Declare the inputs of a rule, by file: see `Rule`."""
    return lambda check: Rule(check, frozenset(decoded), frozenset(error_free), frozenset(iterated))


def run_rules(groups: Sequence[Sequence[Rule]], case: Case, undecoded: frozenset[str], findings: Findings) -> None:
    """Run groups of rules in turn, each rule if its inputs allow.

    undecoded: files that have no content in the case. Findings about entities that no file declares are dropped: that
    they are unknown has been reported.
    """
    for group in groups:
        errors = findings.errors
        faulty = undecoded | {error.file for error in errors}
        unknown = {Part(error.facts["kind"], error.value) for error in errors if error.code is UNKNOWN_REFERENCE}
        for rule_ in group:
            if rule_.decoded & undecoded or rule_.error_free & faulty:
                continue
            rule_findings = Findings()
            rule_(case, rule_findings)
            findings.extend(finding for finding in rule_findings if _is_new(finding, undecoded, unknown))


def _is_new(finding: Finding, undecoded: frozenset[str], unknown: set[Part]) -> bool:
    """Return whether a finding does not merely follow from an error that was reported."""
    return finding.file not in undecoded and not (finding.subject and finding.subject[0] in unknown)


# Codes that several rules use.

UNKNOWN_REFERENCE = error_code(
    "unknown-reference", Layer.REFERENCES, "there is no {kind} {value}", remedy="declared: {declared}"
)

NEGATIVE = error_code("negative-value", Layer.MEANING, "is {value:g}", expected="at least 0")
NOT_POSITIVE = error_code("value-not-positive", Layer.MEANING, "is {value:g}", expected="a number above 0")
OUT_OF_RANGE = error_code("value-out-of-range", Layer.MEANING, "is {value:g}", expected="{range}")

MINIMUM_ABOVE_MAXIMUM = error_code(
    "minimum-above-maximum",
    Layer.MEANING,
    "is {value:g}, above {maximum_field}, which is {maximum:g}",
    expected="at most the maximum",
)

END_NOT_AFTER_START = error_code(
    "end-not-after-start",
    Layer.MEANING,
    "is {value}, not after start_date, which is {start}",
    expected="the first day after the {period}",
)

ENDS_AFTER_STUDY_START = error_code(
    "ends-after-study-start",
    Layer.MEANING,
    "is {value}, after the study starts on {start}",
    expected="{start} or earlier",
)

WINDOWS_OVERLAP = error_code(
    "windows-overlap",
    Layer.MEANING,
    "the window from {value} begins before the one from {before} ends",
    expected="windows that do not overlap",
)


def require_not_negative(value: float, file: str, subject: Subject, field: str, findings: Findings) -> None:
    """Add an error if a number is negative."""
    if value < 0.0:
        findings.add(NEGATIVE, file, subject, field, value=value)


def require_order(
    lower: float, upper: float | None, file: str, subject: Subject, fields: tuple[str, str], findings: Findings
) -> None:
    """Add an error if a minimum is above its maximum (None: no limit), or a maximum is negative."""
    if upper is not None and upper < 0:
        findings.add(NEGATIVE, file, subject, fields[1], value=upper)
    elif upper is not None and lower > upper:
        findings.add(
            MINIMUM_ABOVE_MAXIMUM, file, subject, fields[0], value=lower, maximum_field=fields[1], maximum=upper
        )


def report_rows(
    file: str,
    table: Table,
    wrong: Iterable[tuple[str, NDArray[np.bool_], str]],
    subject_of: Callable[[Table, int], Subject],
    findings: Findings,
) -> None:
    """Add an error for each number of a table out of range; `wrong`: column, flags of its rows, the range expected."""
    for column, is_wrong, expected in wrong:
        for row in np.flatnonzero(is_wrong).tolist():
            value = table[column][row]
            findings.add(OUT_OF_RANGE, file, subject_of(table, row), column, value=value, range=expected)


# Rows of tables.


def row_subject(keys: Sequence[str], row: Iterable[int]) -> Subject:
    """Return the subject of a row by its keys, such as `hydro 3, stage 4`; keys that are null are left out."""
    pairs = zip(keys, row, strict=True)
    return tuple(Part(key.removesuffix("_id"), int(value)) for key, value in pairs if value != ABSENT_ID)


def distinct(table: Table | None, *columns: str) -> list[tuple[int, ...]]:
    """Return the distinct combinations of integer columns, sorted; none without the table."""
    if table is None or table[columns[0]].size == 0:
        return []
    order = np.lexsort([table[column] for column in reversed(columns)])
    ordered = [table[column][order] for column in columns]
    is_first = np.append(True, ~repeats(ordered))
    return list(zip(*(values[is_first].tolist() for values in ordered), strict=True))


def repeats(columns: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Return for each row but the first of sorted columns whether it equals the row before."""
    same = np.ones(max(0, len(columns[0]) - 1), np.bool_)
    for values in columns:
        same &= values[1:] == values[:-1]
    return same


def has_inflow_lags(case: Case) -> bool:
    """Return whether inflows depend on earlier ones: by coefficients that are given, or that will be estimated."""
    tables = case.scenarios
    if not case.system.hydros:
        return False
    if _has_rows(tables.inflow_ar_coefficients) or _has_rows(tables.inflow_annual_component):
        return True
    return _has_rows(tables.inflow_history) and case.config.estimation.max_order > 0


def _has_rows(table: Table | None) -> bool:
    return table is not None and next(iter(table.values())).size > 0
