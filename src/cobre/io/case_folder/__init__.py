"""The directory of a case as a whole: which files it has, digests, schemas, patches, templates."""
