"""Types of the arguments of tools: limits are checked, and descriptions read, before a tool is called."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from cobre.limits import MAX_COUNT, MAX_THREADS

CasePath = Annotated[str, Field(description="Folder of a case, absolute or relative to the server's first folder.")]
JobPath = Annotated[str, Field(description="The `job` that start_study returned, or the output folder of any run.")]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Threads = Annotated[int, Field(ge=1, le=MAX_THREADS)]
Texts = list[str] | str | None  # a text is a list of one
Numbers = list[int] | int | None


class CaseChange(BaseModel):
    """A change of a JSON file of a case, as JSON Patch (RFC 6902) has it."""

    file: Annotated[str, Field(description="For example system/thermals.json.")]
    op: Literal["add", "replace", "remove"]
    path: Annotated[str, Field(description="For example /thermals/0/cost_per_mwh; /thermals/- appends to a list.")]
    value: Any = None
