"""From what a caller gives as a case to a study that is ready on all ranks."""
