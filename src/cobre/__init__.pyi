"""The names of `cobre` for type checkers and editors; at run time they come when they are first used."""

from contextlib import AbstractContextManager

from cobre import errors as errors
from cobre import io as io
from cobre import model as model
from cobre import results as results
from cobre import run as run
from cobre import schema as schema
from cobre.comparison.result import StudyComparison as StudyComparison
from cobre.comparison.result import compare as compare
from cobre.compat.policy_checkpoint import write_policy_checkpoint as write_policy_checkpoint
from cobre.compat.study_object import Study as Study
from cobre.core.case import Case as Case
from cobre.core.case import changed as changed
from cobre.core.stopping import StoppingRule as StoppingRule
from cobre.io.case import load_case as load_case
from cobre.io.findings import InvalidCaseError as InvalidCaseError
from cobre.io.saving import save_case as save_case
from cobre.policy.object import Policy as Policy
from cobre.sddp.plugins.interfaces import CutSelection as CutSelection
from cobre.sddp.plugins.interfaces import RiskMeasure as RiskMeasure
from cobre.sddp.plugins.interfaces import Sampler as Sampler
from cobre.sddp.plugins.user_plugins import PluginError as PluginError
from cobre.study.api import simulate as simulate
from cobre.study.api import train as train
from cobre.study.bound import bound as bound
from cobre.study.results import SimulationResult as SimulationResult
from cobre.study.results import TrainingResult as TrainingResult
from cobre.study.study_record import system_map as system_map
from cobre.study.validation import validate as validate
from cobre.versions import version_info as version_info

__version__: str

def without_collection() -> AbstractContextManager[None]: ...
