"""A refused target does not stop a build: what does not need the failed node is built.

A report joins every target and variant. It is made of those that were built, and its page names the
others with their errors, which are in its key.
"""

from __future__ import annotations

from typing import Any

from doit.exceptions import BaseFail, UnmetDependency
from doit.runner import Runner

from npumake.errors import CacheError, PipelineError
from npumake.make.node import REFUSED

BUG = "a bug in npumake: its traceback is on the console"


class RefusingRunner(Runner):  # type: ignore[misc]  # doit is not typed
    """Of doit's runners: goes on after an error, but not after one of the cache or the disk, which
    every other node would meet."""

    final_result: int

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._refusals: dict[str, tuple[str, str]] = {}

    def _handle_task_error(self, node: Any, base_fail: BaseFail) -> None:
        result, error = self.final_result, getattr(base_fail, "error", None)
        super()._handle_task_error(node, base_fail)
        if isinstance(base_fail, UnmetDependency):
            self.final_result = result  # doit takes it for an error of its own
            self._refusals[node.task.name] = self._refusals[node.bad_deps[0].task.name]
        else:
            self._refusals[node.task.name] = _words(error)
        if isinstance(error, CacheError):
            self._stop_running = True

    def select_task(self, node: Any, tasks_dict: Any) -> bool:
        if not self._may_do_without(node):
            return bool(super().select_task(node, tasks_dict))
        # Its artifact may be current by those of an earlier build, so doit does not ask.
        node.run_status = "run"
        self._get_task_args(node.task, tasks_dict)
        node.task.options[REFUSED] = dict(self._refusals)
        return True

    def _may_do_without(self, node: Any) -> bool:
        """Whether a node joins inputs of which some were built and some not. A frozen build makes
        no other artifacts than those of its lock file."""
        planned = node.task.meta.get("node") if node.task.meta else None
        if planned is None or not node.bad_deps or node.ignored_deps or not planned.joins:
            return False
        if getattr(node.task.meta["build"], "lock", None) is not None:
            return False
        failed = {bad.task.name for bad in node.bad_deps}
        return bool({*planned.inputs.values()} - failed)


def _words(error: PipelineError | None) -> tuple[str, str]:
    return (error.what, error.hint) if error else (BUG, "")
