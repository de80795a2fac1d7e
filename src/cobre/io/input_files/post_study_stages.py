"""post_study_stages.json: stages after the study, and bounds of deliveries in them."""

from cobre.core.anticipation import PostStudy, PostStudyBound, PostStudyStage
from cobre.io.decoding.json_documents import Document
from cobre.io.decoding.json_files import JsonFile, decode
from cobre.io.findings.duplicates import report_duplicates
from cobre.io.findings.problems import Layer, Problems

FILE = "post_study_stages.json"


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
        if stage.duration_hours <= 0.0:
            message = f"is {stage.duration_hours:g}"
            problems.error(Layer.SCHEMA, FILE, f"stage {index}", "duration_hours", message, "a number above 0")
    return PostStudy(file.stages, file.thermal_bounds)
