"""Errors of workers, as scripts get them: the same as if the study ran in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from cobre.comm import BackendError, CommError
from cobre.comm.launch import WorkerError
from cobre.errors import CobreError


@contextmanager
def raising_worker_errors() -> Iterator[None]:
    """Re-raise the worker's CobreError in place of WorkerError, which becomes its cause.

    Errors of communication, a rank that died and exceptions that are not Cobre's stay WorkerErrors.
    """
    try:
        yield
    except WorkerError as error:
        is_communication = isinstance(error.inner, CommError | BackendError)  # WorkerError says which rank failed
        if isinstance(error.inner, CobreError) and not is_communication:
            raise error.inner from error
        raise
