"""Questions about a case or a policy that are not a run: cost per stage, bounds, recorded bits, a map."""
