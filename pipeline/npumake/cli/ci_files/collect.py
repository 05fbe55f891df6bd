"""Run: the results of a build, collected for the files of `npumake ci`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from npumake.cli.ci_files.junit import junit_text
from npumake.cli.ci_files.results import BUILT, CURRENT, HITS, ReportedNode, results_of
from npumake.cli.ci_files.sarif import SarifResult, sarif_text
from npumake.cli.ci_files.summary import ModelRow, Summary, summary_text
from npumake.cli.projects import NamedBuild
from npumake.cli.reporter import NodeOutcome
from npumake.cli.tables import worst_node_lines
from npumake.debug.compared import Comparison
from npumake.digest import of_document
from npumake.errors import PipelineError
from npumake.make.base import Base, rebuilt, stored_file
from npumake.make.build import Build
from npumake.make.lock import Lock, locked_name
from npumake.make.node import Node
from npumake.report.model_figures import ModelFigures, model_figures

FIGURED = "compiled"  # a row of the summary has a node of this stage
FIGURE_STAGES = ("evaluation", "comparison", FIGURED)  # the source of its figures


@dataclass(frozen=True)
class Run:
    """The projects that were built, their outcomes, the base of each by its name, and the number of
    projects that were left alone."""

    entries: Sequence[NamedBuild]
    outcomes: Sequence[NodeOutcome]
    bases: Mapping[str, Base]
    untouched: int

    def junit(self) -> str:
        return junit_text(self.results)

    def sarif(self, root: Path, code: int) -> str:
        return sarif_text(self.results, list(self._findings()), root, code)

    def summary(self) -> str:
        with TemporaryDirectory(prefix="npumake-base-") as folder:
            rows = [row for build in self._builds for row in self._rows(build, Path(folder))]
        saved = sum(self._saved(build) for build in self._builds)
        base = next((entry.commit.name[:12] for entry in self.bases.values()), "")
        notes = [*dict.fromkeys(self._notes())]
        return summary_text(Summary(rows, self.results, saved, base, self.untouched, notes))

    def with_rebuilt_base(self) -> Run:
        """With the locks of builds of the base, if the base has the project."""
        bases = dict(self.bases)
        by_commit = {base.commit: base for base in self.bases.values()}
        for commit in by_commit:
            builds = [b for b in self._builds if bases[b.plan.project].commit == commit]
            for name, lock in rebuilt(builds, commit).items() if builds else ():
                bases[name] = replace(bases[name], lock=lock)
        return replace(self, bases=bases)

    @cached_property
    def results(self) -> Sequence[ReportedNode]:
        return list(results_of(self.entries, self.outcomes))

    @property
    def _builds(self) -> Iterator[Build]:
        return (build for _, build in self.entries if isinstance(build, Build))

    @cached_property
    def _statuses(self) -> Mapping[str, str]:
        return {result.name: result.status for result in self.results}

    def _is_valid(self, node: Node) -> bool:
        return self._statuses[node.name] in (*HITS, BUILT)

    # -- the table -------------------------------------------------------------------------

    def _rows(self, build: Build, folder: Path) -> Iterator[ModelRow]:
        """A row for each variant and target, and for those of the base that are removed."""
        base = self.bases.get(build.plan.project)
        lock = base.lock if base else None
        places = {}
        for node in build.plan.nodes:
            if node.stage == FIGURED:
                places[locked_name(node).rpartition("/")[0]] = node
        for place, node in places.items():
            before, is_stored = self._before(build, lock, place, folder)
            is_new = lock is not None and before is None
            row = ModelRow(node.group, str(node.target), self._after(build, node))
            yield replace(row, before=before, state="new" if is_new else "", is_stored=is_stored)
        for name in lock.artifacts if lock else ():
            place, _, stage = name.rpartition("/")
            if stage == FIGURED and place not in places:
                before, is_stored = self._before(build, lock, place, folder)
                variant, _, target = place.rpartition(":")
                model = f"{build.plan.project}{variant}"
                yield ModelRow(model, target, None, before, "removed", is_stored)

    def _after(self, build: Build, compiled: Node) -> ModelFigures | None:
        """None if the file was not built."""
        if not self._is_valid(compiled):
            return None
        branch = compiled.name.rpartition("/")[0]

        def file(stage: str) -> Path | None:
            node = build.plan.by_name.get(f"{branch}/{stage}")
            return build.artifact(node) if node is not None and self._is_valid(node) else None

        return model_figures(str(compiled.target), file)

    def _before(
        self, build: Build, lock: Lock | None, place: str, folder: Path
    ) -> tuple[ModelFigures | None, bool]:
        """The figures of the base, None if it has no such target; and whether the cache has its
        artifacts. The lock has the size of a file that the cache lacks."""
        compiled = lock.artifacts.get(f"{place}/{FIGURED}") if lock else None
        if lock is None or compiled is None:
            return None, True

        def file(stage: str) -> Path | None:
            return self._locked_file(build, lock, f"{place}/{stage}", folder)

        stages = [stage for stage in FIGURE_STAGES if f"{place}/{stage}" in lock.artifacts]
        try:
            figures = model_figures(place.rpartition(":")[2], file)
        except PipelineError:  # of another version, or of a removed chip
            return ModelFigures(size=compiled.size), False
        return replace(figures, size=compiled.size), all(map(file, stages))

    def _locked_file(self, build: Build, lock: Lock, name: str, folder: Path) -> Path | None:
        """An artifact of the base: that of this build if it is the same, else the stored one."""
        node, locked = build.plan.by_name.get(_node_name(build, name)), lock.artifacts.get(name)
        if node is not None and locked is not None and self._is_valid(node):
            stamp = build.stamp(node)
            if stamp is not None and stamp.digest == locked.digest:
                return build.artifact(node)
        return stored_file(build.memory.store, lock, name, folder)

    # -- the cache -------------------------------------------------------------------------

    def _saved(self, build: Build) -> float:
        """The recorded seconds of the nodes that were not built, if a record has them."""
        seconds = 0.0
        for node in build.plan.nodes:
            stamp, status = build.stamp(node), self._statuses[node.name]
            if stamp is not None and status in HITS:
                # Only the near store: artifacts recalled from the remote are here already.
                store = build.memory.near if status == CURRENT else build.memory.store
                record = store.recall(of_document(stamp.document))
                seconds += (record.seconds or 0.0) if record else 0.0
        return seconds

    def _notes(self) -> Iterator[str]:
        for build in self._builds:
            base = self.bases.get(build.plan.project)
            if base is not None and base.lock is None:
                name = build.plan.project
                yield f"The base has no valid lock file of `{name}`: nothing is compared."

    # -- findings --------------------------------------------------------------------------

    def _findings(self) -> Iterator[SarifResult]:
        for build in self._builds:
            file = build.directory / "project.yaml"
            for node in build.plan.nodes:
                if node.stage == "comparison" and self._is_valid(node):
                    comparison = Comparison.load(build.artifact(node))
                    name = node.name.rpartition("/")[0]
                    if lines := worst_node_lines(comparison, node.group):
                        yield SarifResult("LargestError", name, "\n".join(lines), file)
                    for note in comparison.notes:
                        yield SarifResult("Note", name, note, file)


def _node_name(build: Build, locked: str) -> str:
    """The name of a locked node in its project's plan."""
    return f"{build.plan.project}{locked if locked.startswith('@') else f':{locked}'}"
