"""Comparison of two studies in cost, power and water: differences of means, with confidence intervals."""
