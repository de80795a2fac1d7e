"""What solvers say of an LP, in words; the numbers are those of HiGHS and of the native simplex."""

OPTIMAL, INFEASIBLE, UNBOUNDED = "optimal", "infeasible", "unbounded"

STATUS_WORDS = {
    7: f"{OPTIMAL}, but not solved accurately enough for cuts",
    8: INFEASIBLE,
    9: f"{UNBOUNDED} or {INFEASIBLE}",
    10: UNBOUNDED,
    14: "iteration limit reached",
    100: "not solved by any method (numbers of very different sizes), nor proved to be without a solution",
}
