"""The case directory: list of files, digests, schemas, patches, templates."""
