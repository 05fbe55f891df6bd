"""Nodes as doit tasks. doit orders, selects and parallelises; the store remembers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from doit import cmd_run
from doit.cmd_base import ModuleTaskLoader
from doit.dependency import JSONCodec, JsonDB
from doit.doit_cmd import DoitMain
from doit.runner import JobHold, JobTask, MRunner, Runner

from npumake.errors import PipelineError, StageError
from npumake.late import when_used
from npumake.make.failed_stage import FailedStage
from npumake.make.node import Refusals, without_refused
from npumake.make.refusals import RefusingRunner
from npumake.make.sealed_build import SealedBuild, SealedNode

if TYPE_CHECKING:
    from npumake.make.build import Build
    from npumake.make.executor import Executor
    from npumake.make.node import Node
with when_used("npumake.make.workers"):  # a build with nothing to do has none
    from npumake.make import workers
with when_used("npumake.make.delegating"):  # likewise, and only with an executor
    from npumake.make import delegating

Make = Callable[["Build", "Node"], Any]  # returns an Outcome of npumake.make.maker


# They take longest and give no artifact for others, so they run last.
REPORTING = ("compiled_check", "comparison", "listings", "findings", "report", "gates")
RESULT = ("how", "seconds", "unstored", "note", "worker")  # what a task returns to the reporter
GATES, REPORT = "gates", "report"  # the gates wait for the page that explains them


class LocalMeta(dict[str, Any]):
    """A dict for this process: pickled with its task, it is empty elsewhere."""

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[()]]:
        return dict, ()


def tasks(build: Build | SealedBuild, make: Make) -> Iterator[dict[str, Any]]:
    """One task per node, below a group task per variant; the project's group has them all.

    Reporting stages come last.
    """
    nodes: Sequence[Node | SealedNode]
    nodes = build.nodes if isinstance(build, SealedBuild) else build.plan.nodes
    pages = [node.name for node in nodes if node.stage == REPORT]
    for node in nodes:
        reports = pages if node.stage == GATES else []
        yield {
            "basename": node.group,
            "name": node.short,
            "doc": node.summary,
            "actions": [(_act, [build, node, make])],
            "task_dep": [*node.inputs.values(), *([node.twin] if node.twin else []), *reports],
            "uptodate": [(_is_current, [build, node])],
            "targets": [f"{build.directory}/{node.path}"],
            "clean": True,
            "meta": LocalMeta(node=node, build=build),
        }
    ordered: list[Node | SealedNode] = sorted(
        nodes,
        key=lambda node: REPORTING.index(node.stage) if node.stage in REPORTING else -1,
    )
    groups: dict[str, list[str]] = {}
    for node in nodes:
        groups.setdefault(node.group, [])
    for node in ordered:
        groups[node.group].append(node.name)
    project, *variants = groups
    groups[project] = [*(node.name for node in ordered), *variants]
    for group, members in groups.items():
        yield {"basename": group, "name": None, "doc": f"build {group}", "task_dep": members}


def failing_task(project: str, error: PipelineError) -> dict[str, Any]:
    """A task that fails with the project's error, so that other projects can be built."""
    return {"basename": project, "doc": str(error), "actions": [(_refuse, [error])]}


def _act(
    build: Build | SealedBuild, node: Node | SealedNode, make: Make, refused: Refusals | None = None
) -> Any:
    """`refused` is the option of a task whose inputs were built in part."""
    try:
        opened, planned = in_full(build, node)
        outcome = make(opened, without_refused(planned, refused))
    except PipelineError as error:
        return FailedStage(error)
    return outcome._asdict()


def _refuse(error: PipelineError) -> FailedStage:
    return FailedStage(error)


def in_full(build: Build | SealedBuild, node: Node | SealedNode) -> tuple[Build, Node]:
    """The build and its node, planned. Raises PipelineError."""
    if isinstance(build, SealedBuild):
        return build.opened, build.node(node.name)
    return build, cast("Node", node)


def _is_current(build: Any, node: Any) -> bool:
    return bool(build.is_current(node))


# doit reads it at every task; this avoids computing it again.
_is_current.__signature__ = inspect.signature(_is_current)  # type: ignore[attr-defined]


class DisposableNotes(JSONCodec):  # type: ignore[misc]  # doit is not typed
    """doit's notes. doit writes them in place, so those of a killed build are dropped.

    Its notes on results of our own tasks are left out: no build reads them, and reading them takes
    longer than everything else that doit does.
    """

    def encode(self, data: dict[str, Any]) -> str:
        notes = {task: note for task, note in data.items() if not _is_ours(note)}
        return str(super().encode(notes))

    def decode(self, data: str) -> dict[str, Any]:
        try:
            notes = super().decode(data)
        except ValueError:
            return {}
        is_whole = isinstance(notes, dict) and all(isinstance(n, dict) for n in notes.values())
        return notes if is_whole else {}


def _is_ours(note: Mapping[str, Any]) -> bool:
    """Whether it holds the result of `_act`, and no setting of the user (`ignore`)."""
    values = note.get("_values_:")
    is_result = isinstance(values, dict) and values.keys() == {*RESULT}
    return is_result and note.keys() <= {"_values_:", "result:", "checker:", "deps:"}


class OneProcess(RefusingRunner, Runner):  # type: ignore[misc]  # doit is not typed
    """doit's runner in this process."""


class Workers(RefusingRunner, MRunner):  # type: ignore[misc]  # doit is not typed
    """doit's process runner, with a pipe to each process that reports its end.

    doit's own has one queue for all: it does not detect a killed process, which may have locked the
    queue.
    """

    def run_tasks(self, task_dispatcher: Any) -> None:
        self._run_tasks_init(task_dispatcher)
        self._workers: list[workers.Worker] = []
        try:
            self._hand_out(None)
            while busy := [worker for worker in self._workers if worker.node]:
                for worker in workers.ready(busy):
                    if worker.node:  # not ended meanwhile by another
                        self._hand_out(self._finished(worker))
        except BaseException:
            self._kill()
            raise
        for worker in self._workers:
            worker.close()

    def _hand_out(self, completed: Any) -> None:
        """Passes a task to each idle process, while tasks are ready."""
        at_once = min(self.num_process, len(self.tasks))
        while sum(worker.node is not None for worker in self._workers) < at_once:
            job = self.get_next_job(completed)
            completed = None
            if job is None or job.type is JobHold.type:
                return
            if not self._workers:  # before this process has other threads
                for _ in range(at_once):
                    self._workers.append(
                        workers.Worker(self._execute, self.teardown, self._workers)
                    )
            idle = next(worker for worker in self._workers if worker.node is None)
            idle.begin(self.task_dispatcher.nodes[job.name], job)
            self.reporter.execute_task(idle.node.task)

    def _finished(self, worker: workers.Worker) -> Any:
        """The finished node. If its process died, all others are ended too."""
        node, worker.node = worker.node, None
        try:
            self._process_result(node, node.task, worker.result())
        except workers.WorkerEnded as ended:
            self._kill()
            self._handle_task_error(node, FailedStage(_died(node.task.name, ended)))
            self._stop_running = True
        return node

    def _execute(self, job: Any) -> dict[str, Any]:
        """In a worker: the result of a task, in the form of doit's processes."""
        if job.type is JobTask.type:
            task = workers.unpacked(job.task_pickle)
        else:
            task = self.tasks[job.name]
            task.update_from_pickle(job.task_dict)
        if task.teardown:
            self.teardown_list.append(task)
        failure = task.execute(self.stream)
        return {
            **({"failure": failure} if failure else {}),
            "name": task.name,
            "task": task.pickle_safe_dict(),
            "out": [action.out for action in task.actions],
            "err": [action.err for action in task.actions],
        }

    def _kill(self) -> None:
        for worker in self._workers:
            worker.kill()


def _died(name: str, ended: workers.WorkerEnded) -> StageError:
    message = f"the process that built `{name}` ended with {ended}"
    hint = "finished artifacts are kept; run it again"
    if ended.signal == "SIGKILL":
        hint = "out of memory? use fewer nodes and threads at a time: -n 1, NPUMAKE_THREADS=1"
    return StageError(message, None, hint)


def _keep_notes(notes: JsonDB, dump: Callable[[JsonDB], None] = JsonDB.dump) -> None:
    """On a full disk doit runs without its notes: no build reads them."""
    with suppress(OSError):
        dump(notes)


def use_workers() -> None:
    """Replaces doit's runners in this process: doit has no setting for it."""
    cmd_run.Runner, cmd_run.MRunner = OneProcess, Workers
    JsonDB.dump = _keep_notes


def run_doit(
    members: dict[str, Any], arguments: list[str], executor: Executor | None = None
) -> int:
    """`doit run` over the members of a dodo file, in this process; returns doit's exit code.
    Nodes run in `executor`, if any."""
    use_workers()
    if executor is not None:
        cmd_run.MRunner = delegating.runner(executor)
        arguments = ["-n", "1", *arguments]  # doit then uses this runner
    return int(DoitMain(ModuleTaskLoader(members)).run(["run", *arguments]))
