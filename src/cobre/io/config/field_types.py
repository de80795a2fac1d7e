"""Number types with ranges, for fields of config.json."""

from typing import Annotated

from pydantic import Field

from cobre.limits import MAX_COUNT

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
NonNegativeCount = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
