"""The application service: load, share, train, simulate, report. All interfaces call it."""
