"""What the data of a noise model can get wrong."""

from cobre.errors import ValidationError


class NoiseModelError(ValidationError):
    """A table or setting from which no noise can be made; the message names file, entity and field."""

    def __init__(self, file: str, where: str, problem: str) -> None:
        super().__init__(f"{file}: {where}: {problem}")
        self.file = file
        self.where = where
        self.problem = problem
