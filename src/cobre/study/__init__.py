"""The one application service: load, share, train, simulate, report. Everything else that a user touches calls it."""
