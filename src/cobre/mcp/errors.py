"""What goes wrong with studies that run in the background."""

from cobre.errors import CobreError


class JobError(CobreError):
    """A study that cannot be started or stopped, and why."""
