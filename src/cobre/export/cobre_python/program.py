"""The programs for which this layout is written: cobre-python 0.18 and its successor novomodelo 0.19.

Both have the same directories, tables and dictionaries. They differ in what is listed here. Each loads no policy of
another program or version than its own, so policies bear its name and version: they name the format.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Program:
    """A reader of the layout.

    has_scaled_cuts: cuts in units of the cost scale, not in $. more_columns: by table, columns that follow those of
    cobre-python.
    """

    software: str
    version: str
    policy_format: int
    has_scaled_cuts: bool
    more_columns: Mapping[str, str] = field(default_factory=dict)


LAYOUT_0_18 = Program("cobre", "0.18.0", 3, has_scaled_cuts=False)
LAYOUT_0_19 = Program("novomodelo", "0.19.1", 4, True, {"convergence": "lazy_round_cap_hits"})
