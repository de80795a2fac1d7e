"""The upper bound that `cobre bound` or the stopping rule `upper_bound` computed: one tile of the overview."""

from cobre.report.run_folder import RunFolder
from cobre.runs.formatting import money_in_words, percent_in_words

_NAMES = {
    "enumeration": ("Upper bound", "exact cost of the policy"),
    "inner": ("Upper bound", "of the optimum, by inner approximation"),
    "sampled": ("Cost of the policy", "estimated"),
}


def upper_bound_tiles(run: RunFolder) -> list[tuple[str, str, str]]:
    """Title, number and remark of the tile; an empty list without such a bound."""
    found = run.bounds.computed
    if found is None and run.bounds.cost_alone is not None:
        return [(_NAMES["sampled"][0], money_in_words(run.bounds.cost_alone), "from one path: no confidence interval")]
    if found is None:
        return []
    title, kind = _NAMES[found.method]
    sure = f" ± {money_in_words(found.half_width)}, {100 * found.confidence:g} % confidence" if found.confidence else ""
    most = "" if not found.confidence else "up to " if found.is_estimate else "at most "
    kind += ", from below: not a bound" if found.is_estimate else ""
    return [
        (title, money_in_words(found.value), f"{kind}{sure}; {most}{percent_in_words(found.gap)} above the lower bound")
    ]
