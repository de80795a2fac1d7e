"""Validation of a case before it is run, for scripts, the command line and the assistant server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobre.core.case import Case
from cobre.core.file_names import CONFIG_FILE
from cobre.io.case import format_of, read_case
from cobre.io.case_folder.case_files import conversion_in_words, read_conversion
from cobre.io.decoding.format_version import RecognisedFormat
from cobre.io.findings import NO_OPTIONS, Finding, Findings, Layer, error_code, label, lines_of
from cobre.io.policies.policy_file import PolicyFileError
from cobre.io.saving.case_writer import checked_case
from cobre.policy.boundary import load_boundary_policy, with_lags_of_boundary
from cobre.sddp.problem.boundary import BoundaryMismatchError
from cobre.stochastic import NoiseModelError
from cobre.stochastic.model import build_noise_model
from cobre.study.arguments import refuse_overrides
from cobre.study.plausibility import check_generic_numbers, check_plausibility, finding_of_note
from cobre.study.preparation.prepare import convexity_notes
from cobre.study.requests import Overrides
from cobre.text import counted

NOISE_MODEL = error_code("noise-model", Layer.MEANING, "{reason}", remedy="correct the data of this model")

BOUNDARY_MISMATCH = error_code(
    "boundary-policy-mismatch",
    Layer.MEANING,
    "{reason}",
    expected="a policy of this system with a stage that ends where the study does",
)


class ValidationReport:
    """The result of `validate`; true when no error keeps the case from running.

    errors, warnings: a `Finding` each, with code, layer, file, entity, field, value, message, expected and remedy. As
    text, findings that are alike share a line with a count.
    format: the format of the case, 0.18 or 0.19, and how it was recognised; None if there is no case.
    conversion: the deck that a bridge made the case from; None for other cases.
    """

    def __init__(
        self, path: str, findings: Findings, case_format: RecognisedFormat | None, *, is_directory: bool = True
    ) -> None:
        self.path = path
        self.format = case_format
        self.errors: tuple[Finding, ...] = tuple(findings.errors)
        self.warnings: tuple[Finding, ...] = tuple(findings.warnings)
        self.conversion = read_conversion(Path(path)) if is_directory else None

    def __bool__(self) -> bool:
        return not self.errors

    def as_dict(self) -> dict[str, Any]:
        """Return plain values: case, is_valid, format, errors, warnings; the output of `cobre validate --json`."""
        return {
            "case": self.path,
            "is_valid": bool(self),
            "format": None if self.format is None else self.format.version,
            "errors": [finding.as_dict() for finding in self.errors],
            "warnings": [finding.as_dict() for finding in self.warnings],
            **({} if self.conversion is None else {"conversion": self.conversion}),
        }

    def as_cobre_python(self) -> dict[str, Any]:
        """Return `valid`, `errors` and `warnings` as `cobre.io.validate` has them."""
        errors, warnings = ([_peer_fields(finding) for finding in listed] for listed in (self.errors, self.warnings))
        return {"valid": not errors, "errors": errors, "warnings": warnings}

    def text(self, options: Mapping[str, str] = NO_OPTIONS) -> str:
        """Return counts and findings as lines. options: names of overridden settings, see `Finding.text`."""
        counts = f"{counted(len(self.errors), 'error')}, {counted(len(self.warnings), 'warning')}"
        lines = [f"{self.path}: {counts}" if self.format is None else f"{self.path}: {self.format}: {counts}"]
        lines += [f"  error: {line}" for line in lines_of(self.errors, options)]
        lines += [f"  warning: {line}" for line in lines_of(self.warnings, options)]
        if self.conversion is not None:
            lines.append(f"  {conversion_in_words(self.conversion)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def _peer_fields(finding: Finding) -> dict[str, Any]:
    """Return a finding with the names of `cobre.io.validate`; entity and field are None for one on the file."""
    plain = finding.as_dict()
    return {
        "kind": plain["layer"],
        "code": plain["code"],
        "message": str(finding),
        "file": finding.file,
        "entity": finding.entity or None,
        "field": finding.field or None,
        "value": plain["value"],
        "expected": plain["expected"],
        "remedy": plain["remedy"],
    }


def validate(path: Case | str | Path, config_overrides: Overrides | None = None) -> ValidationReport:
    """Check a case directory, or a case in memory, and report all errors and warnings together.

    Structure and schema are checked in every file; references and dimensions across files once the files are right by
    themselves; inflow models, the boundary policy and the plausibility of numbers once there is no error. Raises
    nothing for an invalid case. `cobre validate`, `cobre.io.validate` and the assistant server call this function.

    config_overrides: settings by dotted name that replace those of config.json, such as
    `{"training.tree_seed": 7}`.

    >>> report = cobre.validate("examples/two_reservoirs")
    >>> bool(report), len(report.errors)
    (True, 0)
    """
    findings, formats = Findings(), list[RecognisedFormat]()
    if isinstance(path, Case):
        refuse_overrides(config_overrides)
        case = checked_case(path, findings)
    else:
        case = read_case(path, findings, config_overrides, formats=formats)
    if case is not None and not findings.errors:
        check_generic_numbers(case, findings)
        try:
            noise = with_lags_of_boundary(case, build_noise_model(case), load_boundary_policy(case))
            for note in (*noise.notes, *convexity_notes(case, noise)):
                findings.extend([finding_of_note(note)])
            if not findings.errors:
                check_plausibility(case, noise, findings)
        except NoiseModelError as error:
            findings.add(NOISE_MODEL, error.file, label(error.where), reason=error.problem)
        except (BoundaryMismatchError, PolicyFileError) as error:
            findings.add(BOUNDARY_MISMATCH, CONFIG_FILE, (), "policy.boundary", reason=str(error))
    if isinstance(path, Case):
        case_format = RecognisedFormat(path.format_version, "format_version of the case")
        return ValidationReport(path.name, findings, case_format, is_directory=False)
    return ValidationReport(str(path), findings, formats[0] if formats else format_of(path))


def validate_as_dict(
    path: str | Path,
    config_overrides: Overrides | None = None,
    *,
    output_dir: str | Path | None = None,  # noqa: ARG001
) -> dict[str, Any]:
    """Return whether a case is `valid`, with its `errors` and `warnings` as dictionaries: `cobre.io.validate`.

    Raises nothing for a bad case. `output_dir` has no effect.
    """
    return validate(path, config_overrides).as_cobre_python()
