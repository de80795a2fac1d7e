"""The vocabulary of a study: entities, time, prices, configuration. No files are read here and nothing is solved."""
