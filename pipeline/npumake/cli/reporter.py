"""doit's reporter: prints a line per built node, then the tables.

doit requires only these methods, so this module imports nothing of doit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TextIO

from npumake.cli.screen import SCREEN
from npumake.cli.show import bug_text, error_text
from npumake.cli.terminal import printable, shortened
from npumake.errors import CacheError, PipelineError
from npumake.make.sealed_build import SealedBuild
from npumake.make.tasks import in_full

if TYPE_CHECKING:
    from npumake.debug.compiled_check import CompiledCheck
    from npumake.make.build import Build
    from npumake.make.node import Node
    from npumake.make.seals import Seals

CHECK = "compiled_check"
MAX_TABLES = 4  # more would scroll off the screen


class NodeOutcome(NamedTuple):
    """The status of a node: made, recalled, current or failed; `check` is a check's file."""

    node: str
    status: str
    seconds: float = 0.0
    error: PipelineError | None = None
    check: Path | None = None
    worker: str = ""  # of a cluster


class Reporter:
    desc = "one line per artifact made or recalled, then a table per target"
    first_error: ClassVar[PipelineError | None] = None  # the exit code of `npumake build`
    met_bug: ClassVar[bool] = False  # likewise: before any error of the user's
    outcomes: ClassVar[list[NodeOutcome]] = []  # for its `--json`, in the order they came
    draws_nodes: ClassVar[bool] = True  # a vendor's command prints its own table of them

    def __init__(self, outstream: TextIO, options: Any) -> None:
        SCREEN.use(outstream)
        Reporter.first_error, Reporter.met_bug, Reporter.outcomes = None, False, []
        self._start = time.perf_counter()
        self._counts = {"made": 0, "recalled": 0, "current": 0, "failed": 0}
        self._compared: dict[str, tuple[Build, Node]] = {}  # by name: to be shown
        self._valid: set[str] = set()  # nodes whose artifacts are those of this build
        self._how: dict[str, str] = {}  # by node: made, recalled or current
        self._evaluated: list[tuple[Build, Node]] = []
        self._failed: list[str] = []
        self._errors: dict[str, str] = {}  # by text: the first node that had it
        self._unstored = ""
        self._remote = ""  # why the remote cache is not used
        self._builds: list[Build] = []  # without sealed ones
        self._seals: Seals | None = None
        self._about: dict[str, Mapping[str, Any]] = {}  # by task; doit's own come back empty

    # -- what doit calls -------------------------------------------------------------------

    def initialize(self, tasks: Any, selected: Any) -> None:
        self._about = {name: task.meta for name, task in tasks.items() if task.meta}
        builds = {id(meta["build"]): meta["build"] for meta in self._about.values()}
        self._builds = [b for b in builds.values() if not isinstance(b, SealedBuild)]
        self._seals = next((b.seals for b in builds.values() if isinstance(b, SealedBuild)), None)
        if self._seals is not None:
            has_others = any(task.actions and not task.meta for task in tasks.values())
            self._seals.trust(has_others)
        if self._builds:  # they share one memory
            from npumake.make.batch import begin_batch
            from npumake.make.node import needed_by

            needed = {name: task.task_dep for name, task in tasks.items()}
            begin_batch(self._builds, needed_by(selected, needed))

    def get_status(self, task: Any) -> None:
        pass

    def execute_task(self, task: Any) -> None:
        if task.actions and self._seals is not None:
            self._seals.is_trusted = False
        if task.name in self._about:
            SCREEN.begin(task.name)

    def add_success(self, task: Any) -> None:
        if task.name not in self._about:
            return
        SCREEN.end()
        how, seconds, worker = (task.values[name] for name in ("how", "seconds", "worker"))
        self._counts[how] += 1
        self._unstored = self._unstored or task.values["unstored"]
        self._remote = self._remote or task.values["note"]
        self._succeeded(task.name, how, seconds, worker)
        style = "green" if how == "made" else "cyan"
        place = f"  on {worker}" if worker else ""
        name = shortened(task.name, SCREEN.room(len(f"recalled    999.99 s  {place}")))
        SCREEN.line(f"{how:<8}  {name:<44}  {seconds:6.2f} s{place}", style)
        build, node = in_full(self._about[task.name]["build"], self._about[task.name]["node"])
        if how == "made":
            build.memory.upload()
        if node.stage == "recipe":
            self._print_recipe(build, node)
        if node.stage == "calibration_fit":
            self._print_fit(build, node)
        if node.stage == "comparison":
            self._compared[node.name] = (build, node)
        if node.stage == CHECK and (other := self._beside(build, node, "comparison")):
            self._compared[other.name] = (build, other)
        if node.stage == "evaluation":
            self._evaluated.append((build, node))

    def add_failure(self, task: Any, fail: Any) -> None:
        SCREEN.end()
        if not fail.report or self._is_unmet(task, fail):
            return
        self._counts["failed"] += 1
        SCREEN.line(f"failed    {task.name}", "bold red")
        error = getattr(fail, "error", None)
        Reporter.outcomes.append(NodeOutcome(task.name, "failed", error=error))
        self._failed.append(f"failed    {task.name}" + (f": {error.what}" if error else ""))
        text = error_text(error) if error else bug_text(fail.get_msg())
        first = self._errors.setdefault(text, task.name)
        SCREEN.line(text if first == task.name else f"       the error of {first}")
        Reporter.met_bug |= error is None
        if error and Reporter.first_error is None:
            Reporter.first_error = error

    def _is_unmet(self, task: Any, fail: Any) -> bool:
        """Whether a node was not run because an input failed; counts it."""
        is_unmet = str(fail.get_name()) == "UnmetDependency"
        if is_unmet and task.name in self._about:
            self._counts["not run"] = self._counts.get("not run", 0) + 1
        return is_unmet

    def skip_uptodate(self, task: Any) -> None:
        if task.name in self._about:
            self._counts["current"] += 1
            self._succeeded(task.name, "current")

    def _succeeded(self, name: str, how: str, seconds: float = 0.0, worker: str = "") -> None:
        node, build = self._about[name]["node"], self._about[name]["build"]
        self._valid.add(name)
        self._how[name] = how
        check = build.artifact(node) if node.stage == CHECK else None
        Reporter.outcomes.append(NodeOutcome(name, how, seconds, check=check, worker=worker))

    @staticmethod
    def _beside(build: Build, node: Node, stage: str) -> Node | None:
        """The node of another stage for the same target and variant."""
        return build.plan.by_name.get(f"{node.name.rpartition('/')[0]}/{stage}")

    def skip_ignore(self, task: Any) -> None:
        SCREEN.line(f"ignored   {task.name}")

    def cleanup_error(self, exception: Any) -> None:
        SCREEN.line(exception.get_msg())

    def runtime_error(self, message: str) -> None:
        SCREEN.end()
        SCREEN.line(message, "bold red")

    def teardown_task(self, task: Any) -> None:
        pass

    def complete_run(self) -> None:
        SCREEN.end()
        self._print_tables()
        self._print_evaluation()
        self._print_failed()
        self._save_memory()
        self._finish_uploads()
        counts = ", ".join(f"{count} {how}" for how, count in self._counts.items() if count)
        seconds = time.perf_counter() - self._start
        SCREEN.line(f"{counts or 'nothing to do'} in {seconds:.2f} s")
        SCREEN.use(None)  # the stream is doit's, and done with

    def _print_failed(self) -> None:
        """Repeats the failures, a line each, if tables scrolled them away."""
        for line in self._failed if self._compared or self._evaluated else ():
            SCREEN.line(printable(line), "bold red")

    def _save_memory(self) -> None:
        """Saves the file digests; on a full disk the next build reads every file again."""
        for build in self._builds[:1]:  # one memory is shared by all of them
            try:
                build.memory.save()
            except CacheError as error:
                SCREEN.line(
                    f"warning: {error.what}; the next build reads every file again", "yellow"
                )
            self._unstored = self._unstored or build.memory.unstored
        self._seal()
        if self._unstored:
            SCREEN.line(printable(f"note: nothing is stored: {self._unstored}"), "yellow")

    def _seal(self) -> None:
        """Seals the projects whose nodes were all current in this build."""
        current = [
            build
            for build in self._builds
            if all(self._how.get(node.name) == "current" for node in build.plan.nodes)
        ]
        for memory in {build.memory for build in current}:
            if memory.seals is not None:
                from npumake.make.sealing import seal

                seal(current, memory, memory.seals)

    def _finish_uploads(self) -> None:
        """Uploads new artifacts; the next build continues with pending ones."""
        notes = [self._remote]
        for build in self._builds[:1] if self._counts["made"] else ():
            notes += build.memory.finish_uploads()
        for note in filter(None, dict.fromkeys(notes)):
            SCREEN.line(printable(f"note: {note}"), "yellow")

    def _print_recipe(self, build: Build, node: Node) -> None:
        """Prints the trials of a calibration search."""
        from npumake.quant.search.recipe import Recipe

        for line in Recipe.load(build.artifact(node)).lines:
            SCREEN.line(f"          {line}")

    def _print_fit(self, build: Build, node: Node) -> None:
        """Prints how the calibration set differs from the evaluation set."""
        from npumake.evaluate.calibration_fit import CalibrationFit

        for note in CalibrationFit.load(build.artifact(node)).notes:
            SCREEN.line(f"note: {printable(note)}", "yellow")

    def _print_tables(self) -> None:
        """Prints one table per target, or a summary if there are many."""
        if not self._compared:
            return
        from npumake.cli.tables import (
            comparison_table,
            skipped_lines,
            summary_table,
            worst_node_lines,
        )
        from npumake.debug.compared import Comparison

        compared = [entry for entry in self._compared.values() if entry[1].name in self._valid]
        rows = [
            (node.group, Comparison.load(build.artifact(node)), self._check(build, node))
            for build, node in compared
        ]
        if len(rows) > MAX_TABLES or SCREEN.is_export:
            SCREEN.table(summary_table(rows, SCREEN.width))
            for line in skipped_lines(rows):
                SCREEN.line(f"note: {line}")
            return
        from npumake.cli.projects import typed

        for (project, comparison, check), (build, node) in zip(rows, compared, strict=True):
            if Reporter.draws_nodes:
                SCREEN.table(comparison_table(project, comparison, check, SCREEN.width))
            for line in worst_node_lines(comparison, typed(build.directory, project)):
                SCREEN.line(line, "red")
            notes = (*comparison.notes, *(check.lines if check else ()))
            for line in (*self._estimate(build, node), *(f"note: {note}" for note in notes)):
                SCREEN.line(line)

    def _check(self, build: Build, compared: Node) -> CompiledCheck | None:
        from npumake.debug.compiled_check import CompiledCheck

        node = self._beside(build, compared, CHECK)
        if node is None or node.name not in self._valid:
            return None
        return CompiledCheck.load(build.artifact(node))

    def _estimate(self, build: Build, compared: Node) -> Iterator[str]:
        from npumake.perf.latency import file_latency
        from npumake.targets.reader import read_target

        node = self._beside(build, compared, "compiled")
        if node is None or node.name not in self._valid:
            return
        target, file = read_target(str(node.target)), build.artifact(node)
        latency = file_latency(file.read_bytes(), target) if file.suffix == target.suffix else None
        if latency is not None and not latency.is_bound:
            yield f"estimated: {latency.per_frame}"

    def _print_evaluation(self) -> None:
        if not self._evaluated:
            return
        from npumake.cli.tables import evaluation_table
        from npumake.evaluate.figures import EvaluationResult

        rows = [
            (node.group, EvaluationResult.load(build.artifact(node)))
            for build, node in self._evaluated
        ]
        SCREEN.table(evaluation_table(rows, SCREEN.width))
