"""post_study_stages.json: stages after the study, and bounds of deliveries in them."""

from cobre.core.anticipation import PostStudy, PostStudyBound, PostStudyStage
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Layer, Problems

FILE = "post_study_stages.json"
MAX_HOURS = 8784.0 * 100
"""A century: dates after it are typing errors, and later ones than the year 9999 cannot be computed."""


class PostStudyStagesFile(JsonFile):
    """All of post_study_stages.json."""

    stages: tuple[PostStudyStage, ...]
    thermal_bounds: tuple[PostStudyBound, ...]


def read_post_study_stages(document: Document | None, problems: Problems) -> PostStudy:
    """Stages and bounds; empty without the file."""
    file = decode(document, PostStudyStagesFile, problems)
    if file is None:
        return PostStudy()
    keys = [(row.thermal_id, row.post_study_stage_index) for row in file.thermal_bounds]
    report_duplicates(FILE, "bounds of thermal and stage", keys, problems, "thermal_bounds")
    for index, stage in enumerate(file.stages):
        if not 0.0 < stage.duration_hours <= MAX_HOURS:
            message, remedy = f"is {stage.duration_hours:g}", f"a number above 0 and at most {MAX_HOURS:g}"
            problems.error(Layer.SCHEMA, FILE, f"stage {index}", "duration_hours", message, remedy)
    return PostStudy(file.stages, file.thermal_bounds)
