"""Tools for assistants over cases and runs. Methods are tools; their docstrings are the descriptions of tools."""

import json
import subprocess
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cobre.core.bounds import DEFAULT_PATHS, BoundMethodName
from cobre.core.file_names import OUTPUT
from cobre.mcp.jobs import JobError, Jobs, StudyRequest, cobre_command, job_environment, study_result, study_status
from cobre.mcp.roots import (
    CaseChange,
    CasePath,
    Count,
    JobPath,
    Numbers,
    Roots,
    Texts,
    Threads,
    check_case_paths,
    find_cases_and_runs,
)
from cobre.runs.run_state import is_in_use
from cobre.runs.trained_case import case_of_run
from cobre.study.placement import WorldRequest


def compute_bound(run: Path, method: str, paths: int, time_limit_s: float) -> dict[str, Any]:
    """Run `cobre bound` as a process with a time limit; return the content of the new bound.json.

    Raises JobError for a run in progress, at the time limit, and for errors of `cobre bound`.
    """
    if is_in_use(run):
        raise JobError(f"a study is running in {run}: wait for it to end")
    options = ["--method", method, "--paths", str(paths), "--json"]
    try:
        process = subprocess.run(
            [*cobre_command("bound"), *options, str(run)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=job_environment(),
            timeout=time_limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"no bound within {time_limit_s:g} s: allow more time, or ask for the method sampled with fewer paths"
        raise JobError(message) from error
    if process.returncode:
        raise JobError(process.stderr.strip() or f"cobre bound ended with exit code {process.returncode}")
    result: dict[str, Any] = json.loads(process.stdout)
    return {"job": str(run), **result}


MAX_ROWS = 1000
MAX_WAIT_S = 60.0
MAX_BOUND_S = 3600.0


class Tools:
    """The tools of a server. They check paths and pass the request on to the layers below."""

    def __init__(self, roots: Roots, jobs: Jobs) -> None:
        self._roots = roots
        self._jobs = jobs

    def list_cases_and_runs(self) -> dict[str, Any]:
        """List the cases and the output folders of runs in the server's folders."""
        content = find_cases_and_runs(self._roots)
        return {
            "folders": [str(folder) for folder in self._roots.folders],
            "cases": [str(path) for path in content.cases],
            "runs": [str(path) for path in content.runs],
            "is_complete": content.is_complete,
        }

    def validate_case(self, case: CasePath) -> dict[str, Any]:
        """Check a case. Returns `valid`, and errors and warnings with file, entity, field and what is expected."""
        from cobre.study.validation import validate

        folder = self._case(case)
        return {"case": str(folder), **validate(folder).as_cobre_python()}

    def start_study(
        self,
        case: CasePath,
        output: Annotated[
            str | None, Field(description="Folder for the results; by default `output` in the case.")
        ] = None,
        iterations: Annotated[
            Count | None, Field(description="Number of iterations, instead of the case's stopping rules.")
        ] = None,
        workers: Annotated[
            Count | None, Field(description="Number of processes; by default one, with a thread per core.")
        ] = None,
        threads: Annotated[Threads | None, Field(description="Threads per process.")] = None,
        backend: Literal["auto", "local", "shm", "tcp"] = "auto",
        resume: Annotated[bool, Field(description="Continue from the newest checkpoint in the output folder.")] = False,
        overwrite: Annotated[
            bool, Field(description="Replace the results of an earlier run in the output folder.")
        ] = False,
        warm_start: Annotated[
            str | None, Field(description="A policy or a run; training starts with its cuts.")
        ] = None,
        time_limit_s: Annotated[float | None, Field(ge=0, description="Stop after this many seconds.")] = None,
        report: Annotated[bool, Field(description="Write report.html at the end.")] = True,
    ) -> dict[str, Any]:
        """Start training a policy for a case in the background, then simulate it if the case asks for it.

        Returns a job at once; study_status reports its progress. The bits of the result do not depend on the number
        of workers or threads. The study continues if this server ends.
        """
        folder = self._case(case)
        target = self._roots.check(folder / OUTPUT) if output is None else self._roots.resolve(output)
        if target.is_dir():
            self._roots.folder(str(target))
        check_case_paths(self._roots, folder, target)
        request = StudyRequest(
            case=folder,
            output=target,
            iterations=iterations,
            world=WorldRequest(backend, workers, threads),
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
        wait_s: Annotated[float, Field(ge=0, le=MAX_WAIT_S, description="Wait at most this long for it to end.")] = 0.0,
    ) -> dict[str, Any]:
        """Return the progress of a study: state, phase, bounds of the last iteration, time left, warnings, error.

        States: starting, running, finished, stopped (it can be resumed), failed, killed. Money is in $.
        """
        output = self._roots.folder(job)
        self._jobs.wait(output, wait_s)
        return study_status(output, self._jobs)

    def study_result(self, job: JobPath) -> dict[str, Any]:
        """Return the result of a study that has ended: bounds, gap, simulated costs, workers, digest. Money is in $."""
        return study_result(self._roots.folder(job), self._jobs)

    def stop_study(
        self,
        job: JobPath,
        at_once: Annotated[bool, Field(description="Do not wait for the current iteration, which is lost.")] = False,
    ) -> dict[str, Any]:
        """Stop a study after its current iteration. The policy so far is kept, and start_study can resume it."""
        output = self._roots.folder(job)
        self._jobs.stop(output, at_once=at_once)
        return {"job": str(output), "stop": "requested"}

    def query_results(
        self,
        job: JobPath,
        table: Annotated[
            str | None,
            Field(description="A table of the simulation, or `convergence`. If omitted, all tables are listed."),
        ] = None,
        columns: Annotated[Texts, Field(description="By default all.")] = None,
        scenarios: Annotated[Numbers, Field(description="Ids; by default all.")] = None,
        stages: Annotated[Numbers, Field(description="Ids; by default all.")] = None,
        entities: Annotated[
            list[int | str] | int | str | None, Field(description="Ids or names; by default all.")
        ] = None,
        group_by: Annotated[
            Texts,
            Field(
                description="Columns such as stage_id; returns mean, min and max of the other columns for each group."
            ),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 100,
        offset: Annotated[int, Field(ge=0)] = 0,
    ) -> dict[str, Any]:
        """Return rows of a table of results, with the number of matching rows and the names of the entities.

        Column names contain the units; money is in $. Without a table, all tables and columns are listed.
        """
        from cobre.runs.table_query import TableQuery, available_tables, query_table

        output = self._roots.folder(job)
        if table is None:
            return {"tables": available_tables(output)}
        query = TableQuery(
            table=table,
            columns=_as_list(columns) or (),
            scenarios=_as_list(scenarios),
            stages=_as_list(stages),
            entities=_as_list(entities),
            group_by=_as_list(group_by) or (),
            limit=limit,
            offset=offset,
        )
        return query_table(output, query).as_dict()

    def compare_runs(
        self,
        first: JobPath,
        second: JobPath,
        details: Annotated[
            list[Literal["stages", "entities"]] | Literal["stages", "entities"] | None,
            Field(description="Also return rows by stage, or by plant, bus and line."),
        ] = None,
    ) -> dict[str, Any]:
        """Compare the first run (A) with the second (B): in bits, then in money, energy and water.

        `identical`, or the first difference with both values. `money` has means over common scenarios: a, b,
        difference (b - a) and half_width of its 95 % confidence interval, for cost and its components, marginal costs,
        generation, deficit, storage, spillage and water values; plants that only one run has are listed. Money is in $.
        """
        from cobre.comparison.result import compare_folders

        comparison = compare_folders(self._roots.folder(first), self._roots.folder(second))
        answer = comparison.as_dict()
        if (money := answer["money"]) is not None:
            for name in {"stages", "entities"} - set(_as_list(details) or ()):
                del money[name]
            money["in_words"] = str(comparison)
        return answer

    def start_simulation(
        self,
        case: CasePath,
        policy: Annotated[
            str, Field(description="The run or policy to simulate; it must have the same plants and stages.")
        ],
        output: Annotated[str, Field(description="Folder for the results; not that of a training run.")],
        scenarios: Annotated[
            Count | None, Field(description="Number of scenarios; by default that of the case.")
        ] = None,
        workers: Annotated[Count | None, Field(description="Number of processes.")] = None,
        overwrite: Annotated[bool, Field(description="Replace an earlier simulation in the output folder.")] = False,
        report: Annotated[bool, Field(description="Write report.html at the end.")] = True,
    ) -> dict[str, Any]:
        """Start simulating a stored policy on a case in the background, without training.

        The case may have other loads, inflows or costs. Returns a job at once; study_status reports its progress, then
        use query_results or compare_runs.
        """
        folder, target = self._case(case), self._roots.resolve(output)
        if target.is_dir():
            self._roots.folder(str(target))
        policy_path = self._policy(policy)
        request = StudyRequest(
            case=folder,
            output=target,
            world=WorldRequest(workers=workers),
            report=report,
            overwrite=overwrite,
            policy=policy_path,
            scenarios=scenarios,
        )
        return {"job": str(target), "pid": self._jobs.start(request), "state": "starting"}

    def compute_bound(
        self,
        job: JobPath,
        method: Annotated[
            BoundMethodName,
            Field(description="auto: the tightest that the size of the study allows."),
        ] = "auto",
        paths: Annotated[int, Field(ge=2, description="Number of sampled paths.")] = DEFAULT_PATHS,
        time_limit_s: Annotated[
            float, Field(gt=0, le=MAX_BOUND_S, description="Give up after this many seconds.")
        ] = 60.0,
    ) -> dict[str, Any]:
        """Compute an upper bound for the policy of a run that has ended; unlike a sampled mean, valid under risk, too.

        Returns upper_bound, lower_bound, gap, and half_width and confidence of a sampled estimate; the report of the
        run shows them from then on. Fails if the case has changed since the run. Money is in $.
        """
        run = self._roots.folder(job)
        trained = case_of_run(run)
        if trained is not None and trained.folder is not None:
            self._case(str(trained.folder))
        return compute_bound(run, method, paths, time_limit_s)

    def explain_failure(self, job: JobPath) -> dict[str, Any]:
        """Explain, in planning terms, why a stage of a failed study has no solution, and what to check."""
        from cobre.runs.explanation import explain_failure

        return explain_failure(self._roots.folder(job)).as_dict()

    def read_case_file(
        self,
        case: CasePath,
        file: Annotated[
            str | None, Field(description="For example system/thermals.json. If omitted, all files are listed.")
        ] = None,
    ) -> dict[str, Any]:
        """Return the content of a JSON file of a case; change_case changes it."""
        from cobre.io.case_folder.new_cases import json_files, read_case_file

        folder = self._case(case)
        if file is None:
            return {"case": str(folder), "files": json_files(folder)}
        return {"case": str(folder), "file": file, "content": read_case_file(folder, file)}

    def create_case(
        self,
        case: Annotated[str, Field(description="The new folder.")],
        template: Annotated[str | None, Field(description="If omitted, all templates are listed.")] = None,
    ) -> dict[str, Any]:
        """Create a new case from a template; change_case can then modify a copy of it."""
        from cobre.io.case_folder.new_cases import create_case, templates

        if template is None:
            return {"templates": {entry.name: entry.title for entry in templates()}}
        folder = self._roots.resolve(case)
        create_case(template, folder)
        return {"case": str(folder), "template": template}

    def change_case(
        self,
        case: CasePath,
        output: Annotated[str, Field(description="New folder for the changed case; the original is not changed.")],
        changes: list[CaseChange] | CaseChange,
    ) -> dict[str, Any]:
        """Copy a case to a new folder, change values or add and remove plants there, and validate the result.

        Returns `valid`, errors and warnings as validate_case does. Either all changes are made or none.
        """
        from cobre.io.case_folder.new_cases import Patch, patched_case
        from cobre.study.validation import validate

        folder, target = self._case(case), self._roots.resolve(output)
        patches = [Patch(change.file, change.op, change.path, change.value) for change in _as_list(changes) or ()]
        patched_case(folder, target, patches)
        check_case_paths(self._roots, target)
        return {"case": str(target), **validate(target).as_cobre_python()}

    def _policy(self, text: str) -> Path:
        """Return the path of a policy or run; raise RefusedPathError for a link in it that leads outside."""
        path = self._roots.resolve(text)
        return self._roots.folder(str(path)) if path.is_dir() else path

    def _case(self, text: str) -> Path:
        folder = self._roots.folder(text)
        check_case_paths(self._roots, folder)
        return folder


def _as_list(value: Any) -> list[Any] | None:
    return value if value is None or isinstance(value, list) else [value]
