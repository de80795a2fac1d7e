"""The section on convergence: bounds by iteration and the verdict."""

from dataclasses import replace

from cobre.report.bounds import Bounds
from cobre.report.bounds_chart import bounds_chart
from cobre.report.chart import Chart
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section

MIN_ITERATIONS_TO_ZOOM = 8
INTRO = (
    "The lower bound is proven. The upper bound is a statistical estimate: the mean cost of the paths sampled in one "
    "iteration. It can be above or below the true cost of the policy, and even below the lower bound."
)
EXACT = "Both bounds are proven: the upper bound is the cost of the policy over all paths of the tree."
RISK_AVERSE = (
    "The lower bound is proven, for the risk-adjusted cost that training minimises. The other line is the mean cost of "
    "the paths sampled in each iteration, which is not an upper bound of the risk-adjusted cost."
)
NOT_A_BOUND = (
    "Inflows that are corrected at zero depend on their past, so that the cost-to-go is not convex: what is called "
    "the lower bound estimates the cost, and may lie above it."
)

HOW_TO_READ = "Training has converged when the lower bound no longer rises and lies inside the band."
HOW_TO_READ_EXACT = "Training has converged when the two bounds meet."
HOW_TO_READ_RISK_AVERSE = (
    "Training has converged when the lower bound no longer rises, inside the band or not. "
    "`cobre bound` computes an upper bound."
)
WHY_AGAIN = "The second half in detail, without the wide range of the first iterations."


def convergence(run: RunFolder) -> Section | None:
    """Bounds of all iterations, and again of the later half, since the first ones often take most of the height."""
    bounds = run.bounds
    if not len(bounds):
        return None
    parts: list[Chart] = [bounds_chart(bounds, "bounds", "Bounds by iteration").explained(_how_to_read(bounds))]
    if len(bounds) >= MIN_ITERATIONS_TO_ZOOM:
        later = _later_half(bounds)
        title = f"Bounds from iteration {later.iteration[0]} on"
        parts.append(bounds_chart(later, "bounds-later", title).explained(WHY_AGAIN))
    return Section("convergence", "Convergence", parts, _intro(run))


def _how_to_read(bounds: Bounds) -> str:
    if bounds.is_exact:
        return HOW_TO_READ_EXACT
    return HOW_TO_READ_RISK_AVERSE if bounds.is_risk_averse else HOW_TO_READ


def _intro(run: RunFolder) -> str:
    """The verdict, and an explanation of the upper bound."""
    judged = run.bounds.verdict(is_interrupted=bool(run.summary.get("is_interrupted")))
    verdict = "" if judged is None else f"{judged.sentence[:1].upper()}{judged.sentence[1:]}. "
    if run.bounds.is_exact:
        return verdict + EXACT
    told = RISK_AVERSE if run.bounds.is_risk_averse else INTRO
    if run.bounds.overstated is not None:
        why = "" if "not a bound" in verdict else f"{NOT_A_BOUND} "
        told = why + told.partition(". ")[2]
    return verdict + told


def _later_half(bounds: Bounds) -> Bounds:
    half = slice(len(bounds) // 2, None)
    return replace(
        bounds,
        iteration=bounds.iteration[half],
        lower=bounds.lower[half],
        upper=bounds.upper[half],
        half_width=bounds.half_width[half],
    )
