"""Records of a run: iterations, solver statistics by phase, why a run stopped, upper bounds."""
