"""The shared-memory backend, for ranks on one machine; `cobre._native` does the work."""
