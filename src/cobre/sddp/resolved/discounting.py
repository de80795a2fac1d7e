"""What the future weighs, stage by stage."""

from cobre.core.temporal import Horizon, Stage

DAYS_PER_YEAR = 365.25


def discount_factor(horizon: Horizon, stage: Stage) -> float:
    """The factor of the step that leaves a stage, over the days of the calendar."""
    days = (stage.end_date - stage.start_date).days
    return float((1.0 + _annual_rate(horizon, stage)) ** -(days / DAYS_PER_YEAR))


def _annual_rate(horizon: Horizon, stage: Stage) -> float:
    """The stage's own rate, else that of the transition that leaves it, else the graph's."""
    if stage.annual_discount_rate_override is not None:
        return stage.annual_discount_rate_override
    for transition in horizon.policy_graph.transitions:
        if transition.source_id == stage.id and transition.annual_discount_rate_override is not None:
            return transition.annual_discount_rate_override
    return horizon.policy_graph.annual_discount_rate
