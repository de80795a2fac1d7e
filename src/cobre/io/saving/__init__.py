"""A case from memory to a directory in the current format: what `cobre.io.case` reads, the other way round."""

from cobre.io.saving.case_folder import save_case

__all__ = ["save_case"]
