"""Data connections: how calls and payloads travel between workers and the coordinator."""
