"""What `cobre bound`, or a stopping rule that wanted a bound, found: one tile of the overview."""

from collections.abc import Mapping
from typing import Any

from cobre.report.run_folder import RunFolder
from cobre.report.units import money, percent

_NAMES = {
    "enumeration": ("Upper bound", "exact cost of the policy"),
    "inner": ("Upper bound", "of the optimum, by inner approximation"),
    "sampled": ("Cost of the policy", "estimated"),
}


def upper_bound_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    """Title, number and remark; none where nothing was found."""
    found = run.upper_bound
    name = _NAMES.get(str(found.get("method")))
    if name is None or not _is_whole(found):
        return []
    spread = (
        f" ± {money(found['half_width'])}, {100 * found['confidence']:g} % confidence" if _is_sampled(found) else ""
    )
    remark = f"{name[1]}{spread}; at most {percent(found['gap'])} above the lower bound"
    return [(name[0], money(found["upper_bound"]), remark)]


def _is_whole(found: Mapping[str, Any]) -> bool:
    wanted = ("upper_bound", "half_width", "gap", *(["confidence"] if _is_sampled(found) else []))
    return all(isinstance(found.get(name), int | float) for name in wanted)


def _is_sampled(found: Mapping[str, Any]) -> bool:
    return found.get("method") == "sampled"
