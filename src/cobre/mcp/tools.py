"""What an assistant can do with cases and runs. Methods are tools; their docstrings are what the assistant reads."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cobre.mcp.case_paths import check_case_paths
from cobre.mcp.discovery import look_around
from cobre.mcp.jobs import Jobs, StudyRequest
from cobre.mcp.roots import Roots
from cobre.mcp.status import study_result, study_status

MAX_ROWS = 1000
MAX_WAIT_S = 60.0

CasePath = Annotated[str, Field(description="Folder of a case, absolute or relative to the server's first folder.")]
JobPath = Annotated[str, Field(description="What start_study gave as `job`, or the output folder of any run.")]
Count = Annotated[int, Field(ge=1)]


class Tools:
    """Thin: paths are checked, then the study layer does the work."""

    def __init__(self, roots: Roots, jobs: Jobs) -> None:
        self._roots = roots
        self._jobs = jobs

    def list_cases_and_runs(self) -> dict[str, Any]:
        """List the cases and the output folders of runs in the server's folders."""
        found = look_around(self._roots)
        return {
            "folders": [str(folder) for folder in self._roots.folders],
            "cases": [str(path) for path in found.cases],
            "runs": [str(path) for path in found.runs],
            "is_complete": found.is_complete,
        }

    def validate_case(self, case: CasePath) -> dict[str, Any]:
        """Check a case. Gives `valid`, and errors and warnings with file, entity, field and what would be right."""
        from cobre.study.api import validate

        folder = self._case(case)
        return {"case": str(folder), **validate(folder).findings()}

    def start_study(
        self,
        case: CasePath,
        output: Annotated[
            str | None, Field(description="Folder for the results; by default `output` in the case.")
        ] = None,
        iterations: Annotated[Count | None, Field(description="Instead of the case's stopping rules.")] = None,
        workers: Annotated[
            Count | None, Field(description="Processes that share the work; by default all cores.")
        ] = None,
        threads: Annotated[Count | None, Field(description="Threads of each worker.")] = None,
        backend: Literal["auto", "local", "shm", "tcp"] = "auto",
        resume: Annotated[bool, Field(description="Go on from the newest checkpoint in the output folder.")] = False,
        overwrite: Annotated[
            bool, Field(description="Replace the results of an earlier run in the output folder.")
        ] = False,
        warm_start: Annotated[str | None, Field(description="A policy, or a run, whose cuts to begin with.")] = None,
        time_limit_s: Annotated[float | None, Field(gt=0, description="Stop after so many seconds.")] = None,
        report: Annotated[bool, Field(description="Write report.html, for a browser, at the end.")] = True,
    ) -> dict[str, Any]:
        """Start training a policy for a case in the background, then simulate it if the case says so.

        Returns at once with a job; ask study_status how it stands. The bits of the result do not depend on the number
        of workers or threads. The study goes on when this server ends.
        """
        folder = self._case(case)
        target = self._roots.check(folder / "output") if output is None else self._roots.resolve(output)
        if target.is_dir():
            self._roots.folder(str(target))
        check_case_paths(self._roots, folder, target)
        request = StudyRequest(
            case=folder,
            output=target,
            iterations=iterations,
            workers=workers,
            threads=threads,
            backend=backend,
            resume=resume,
            warm_start=None if warm_start is None else self._policy(warm_start),
            time_limit_s=time_limit_s,
            report=report,
            overwrite=overwrite,
        )
        pid = self._jobs.start(request)
        return {"job": str(target), "pid": pid, "state": "starting"}

    def study_status(
        self,
        job: JobPath,
        wait_s: Annotated[float, Field(ge=0, le=MAX_WAIT_S, description="Wait so long for its end, at most.")] = 0.0,
    ) -> dict[str, Any]:
        """How a study stands: state, phase, bounds of the last iteration, time left, warnings, what went wrong.

        States: starting, running, finished, stopped (it can be resumed), failed, killed. Money is $.
        """
        output = self._roots.folder(job)
        self._jobs.wait(output, wait_s)
        return study_status(output, self._jobs)

    def study_result(self, job: JobPath) -> dict[str, Any]:
        """The result of a study that has ended: bounds, gap, costs of the simulation, workers, digest. Money is $."""
        return study_result(self._roots.folder(job), self._jobs)

    def stop_study(
        self,
        job: JobPath,
        at_once: Annotated[bool, Field(description="Lose what came after the last checkpoint.")] = False,
    ) -> dict[str, Any]:
        """Stop a study after its current iteration. The policy so far is kept, and start_study can resume it."""
        output = self._roots.folder(job)
        self._jobs.stop(output, at_once=at_once)
        return {"job": str(output), "stop": "asked for"}

    def query_results(
        self,
        job: JobPath,
        table: Annotated[
            str | None, Field(description="A table of the simulation, or `convergence`. Without it: the list of all.")
        ] = None,
        columns: Annotated[list[str] | None, Field(description="By default all.")] = None,
        scenarios: Annotated[list[int] | None, Field(description="Ids; by default all.")] = None,
        stages: Annotated[list[int] | None, Field(description="Ids; by default all.")] = None,
        entities: Annotated[list[int | str] | None, Field(description="Ids or names; by default all.")] = None,
        group_by: Annotated[
            list[str] | None,
            Field(description="Columns, such as stage_id: gives mean, min and max of the other columns over all else."),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 100,
        offset: Annotated[int, Field(ge=0)] = 0,
    ) -> dict[str, Any]:
        """Rows of a table of results, with the total number of rows that fit and the names of the entities.

        Units are in the names of the columns; money is $. Without a table: the names of all tables and columns.
        """
        from cobre.study.table_query import TableQuery, available_tables, query_table

        output = self._roots.folder(job)
        if table is None:
            return {"tables": available_tables(output)}
        query = TableQuery(
            table=table,
            columns=columns or (),
            scenarios=scenarios,
            stages=stages,
            entities=entities,
            group_by=group_by or (),
            limit=limit,
            offset=offset,
        )
        return query_table(output, query).as_dict()

    def compare_runs(self, first: JobPath, second: JobPath) -> dict[str, Any]:
        """Compare two runs bit by bit: identical, or the first difference with its place and both values."""
        from cobre.study.compare import compare_runs

        return compare_runs(self._roots.folder(first), self._roots.folder(second)).as_dict()

    def _policy(self, text: str) -> Path:
        """A policy, or a run; a link in it that leads outside is refused, as the study itself would follow it."""
        path = self._roots.resolve(text)
        return self._roots.folder(str(path)) if path.is_dir() else path

    def _case(self, text: str) -> Path:
        folder = self._roots.folder(text)
        check_case_paths(self._roots, folder)
        return folder
