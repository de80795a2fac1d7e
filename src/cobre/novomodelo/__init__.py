"""The Python interface of novomodelo 0.19, for scripts that were written for it.

One line of a script changes: `import cobre.novomodelo as novomodelo`. `Study`, `Policy`, `version_info`,
`write_policy_checkpoint`, `errors`, `io`, `model`, `results`, `run` and `schema` are there. They are those of `cobre`,
which keeps the interface of cobre-python 0.18, except where 0.19 differs: cuts of `results.load_policy` and
`write_policy_checkpoint` are in units of their stage's `cost_scale_factor`, states and bases have their places, and
errors have a common base of the name `errors.NovomodeloError`.

    >>> import cobre.novomodelo as novomodelo
    >>> novomodelo.version_info()["version"]  # doctest: +SKIP
"""

import sys
from typing import TYPE_CHECKING

from cobre import __version__ as __version__
from cobre import errors as errors
from cobre import io as io
from cobre import model as model
from cobre import run as run
from cobre import schema as schema
from cobre.novomodelo import results as results
from cobre.novomodelo.results import write_policy_checkpoint as write_policy_checkpoint
from cobre.versions import version_info as version_info

if TYPE_CHECKING:
    from cobre.compat.study_object import Study as Study
    from cobre.policy.object import Policy as Policy

__all__ = [
    "Policy",
    "Study",
    "__version__",
    "errors",
    "io",
    "model",
    "results",
    "run",
    "schema",
    "version_info",
    "write_policy_checkpoint",
]

# `from cobre.novomodelo.errors import ValidationError` and `import cobre.novomodelo.run` find the shared modules.
sys.modules |= {
    f"{__name__}.{module.__name__.rpartition('.')[2]}": module for module in (errors, io, model, run, schema)
}


def __getattr__(name: str) -> object:
    """Load what needs the solver on first use, as the package `cobre` does."""
    if name in ("Policy", "Study"):
        import cobre  # noqa: PLC0415 - its own lazy names

        return getattr(cobre, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
