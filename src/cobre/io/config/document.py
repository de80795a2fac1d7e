"""config.json as read at the start of a run: parsed once, then passed on."""

from pathlib import Path
from typing import Self

from cobre.io.decoding.json_documents import Document, read_document
from cobre.io.file_names import CONFIG_FILE
from cobre.io.findings.problems import CaseProblem, Problems
from cobre.records import dataclass


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The parsed file. document: None where it is missing or is not JSON; problems: why, and duplicate keys."""

    document: Document | None
    problems: tuple[CaseProblem, ...]

    @classmethod
    def read(cls, case: Path) -> Self:
        """Read config.json of a case directory. Raises OSError if its folder cannot be accessed."""
        problems = Problems()
        document = read_document(case, CONFIG_FILE, problems, is_required=True)
        return cls(document, tuple(problems))
