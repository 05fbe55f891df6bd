"""doit's runner over an executor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from doit.exceptions import BaseFail, TaskError
from doit.runner import JobHold, MRunner

from npumake.errors import PipelineError
from npumake.make import delegation
from npumake.make.executor import Executor
from npumake.make.failed_stage import FailedStage
from npumake.make.node import REFUSED, without_refused
from npumake.make.refusals import RefusingRunner


def runner(executor: Executor) -> type[Any]:
    """The runner, as a class that doit instantiates without our arguments."""
    return type("Delegating", (Delegating,), {"executor": executor})


class Delegating(RefusingRunner, MRunner):  # type: ignore[misc]  # doit is not typed
    """doit's runner over an executor: nodes run there, all other tasks in this process.

    doit passes a node when its inputs are done, as it does for processes.
    """

    executor: Executor

    def run_tasks(self, task_dispatcher: Any) -> None:
        self._run_tasks_init(task_dispatcher)
        self._running: dict[Any, Any] = {}  # by future: doit's node and the delegated one
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._hand_out(None)
        while self._running:
            future = self._ended.get()
            node, work = self._running.pop(future)
            self._conclude(node, partial(delegation.completed, work, self.executor))
            self._hand_out(node)

    def _hand_out(self, completed: Any) -> None:
        while len(self._running) < self.executor.width:
            job = self.get_next_job(completed)
            if job is None or job.type is JobHold.type:
                return
            completed = self._begin(self.task_dispatcher.nodes[job.name])

    def _begin(self, node: Any) -> Any:
        """doit's node if it is done already; None while it runs."""
        task = node.task
        if not task.meta:  # a group, or a project that cannot be planned
            self.process_task_result(node, self.execute_task(task))
            return node
        self.reporter.execute_task(task)
        build, planned = task.meta["build"], task.meta["node"]
        planned = without_refused(planned, task.options.get(REFUSED))
        work = self._attempt(partial(delegation.delegate, build, planned, self.executor))
        if isinstance(work, delegation.Delegated):
            self._running[work.future] = node, work
            work.future.add_done_callback(self._ended.put)
            return None
        self._conclude(node, lambda: work)
        return node

    def _conclude(self, node: Any, outcome: Callable[[], Any]) -> None:
        """Reports the outcome or the error."""
        result = self._attempt(outcome)
        failure = result if isinstance(result, BaseFail) else None
        node.task.values = {} if failure else result._asdict()
        self.process_task_result(node, failure)

    @staticmethod
    def _attempt(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except PipelineError as error:
            return FailedStage(error)
        except Exception as error:  # noqa: BLE001  # a bug; doit reports its traceback
            return TaskError("a node that ran elsewhere", error)
