"""Data types of a study: entities, stages, prices, configuration. Nothing here reads files or solves LPs."""
