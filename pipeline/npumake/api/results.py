"""The result of a build: artifacts and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from npumake.api.table import Cell, Table, table_of
from npumake.debug.compared import Comparison
from npumake.debug.compiled_check import CompiledCheck
from npumake.evaluate.figures import EvaluationResult
from npumake.runtime.session import Session

NODE_COLUMNS = ("node", "on", "subgraph", "type", "cosine", "calibrated cosine", "threshold")
OUTPUT_COLUMNS = ("output", "cosine", "calibrated cosine", "compiled cosine", "sqnr_db", "mse")


@dataclass(frozen=True)
class TargetResult:
    """One target of one variant; `artifacts` are files, by stage."""

    name: str
    artifacts: Mapping[str, Path]

    @property
    def compiled(self) -> Path:
        """The compiled file. Raises KeyError for a project that stops before it."""
        return self.artifacts["compiled"]

    @cached_property
    def comparison(self) -> Comparison:
        return Comparison.load(self.artifacts["comparison"])

    @cached_property
    def check(self) -> CompiledCheck | None:
        """The check of the compiled file; None for a target without that stage."""
        path = self.artifacts.get("compiled_check")
        return CompiledCheck.load(path) if path else None

    @property
    def outputs(self) -> Table:
        """Per output, how close calibrated, quantized and compiled are to the float model."""
        compiled = {row.name: row.cosine for row in self.check.outputs} if self.check else {}
        rows = [
            {
                "output": row.name,
                "cosine": row.cosine,
                "calibrated cosine": row.calibrated_cosine,
                "compiled cosine": compiled.get(row.name),
                "sqnr_db": row.quantized.sqnr_db,
                "mse": row.quantized.mse,
            }
            for row in self.comparison.outputs
        ]
        return table_of(f"{self.name}: outputs", rows, OUTPUT_COLUMNS)

    @property
    def nodes(self) -> Table:
        """Per node, its unit and how close it stays to the float model."""
        rows = [
            {
                "node": row.node,
                "on": row.on,
                "subgraph": row.subgraph,
                "type": row.type,
                "cosine": row.cosine,
                "calibrated cosine": row.calibrated_cosine,
                "threshold": row.threshold,
            }
            for row in self.comparison.rows
        ]
        return table_of(f"{self.name}: nodes", rows, NODE_COLUMNS)

    @property
    def scores(self) -> Table | None:
        """The evaluation, one row per artifact; None for a project without one."""
        path = self.artifacts.get("evaluation")
        if path is None:
            return None
        rows = EvaluationResult.load(path).rows
        names = tuple(dict.fromkeys(name for row in rows for name in row.by_name))
        cells: list[dict[str, Cell]] = [{"artifact": r.artifact, **r.by_name} for r in rows]
        return table_of(f"{self.name}: scores", cells, ("artifact", *names))

    def session(self, **options: Any) -> Session:
        """Runs the compiled file, with the options of `npumake.Session`. Raises GraphError for a
        file that only its chip runs."""
        return Session(self.compiled, **options)

    def _repr_html_(self) -> str:
        return self.outputs._repr_html_()


@dataclass(frozen=True)
class NodeResult:
    """The origin of a node's artifact: made, recalled from the cache, or current before."""

    name: str
    how: str
    seconds: float


@dataclass(frozen=True)
class BuildResult:
    """The targets by name, `rdk-x5`; those of a variant by `rdk-x5@variant`. `notes` are findings
    about samples, and failures of the cache."""

    project: str
    nodes: tuple[NodeResult, ...]
    targets: Mapping[str, TargetResult]
    notes: tuple[str, ...] = ()

    def __getitem__(self, target: str) -> TargetResult:
        """Raises KeyError."""
        return self.targets[target]

    @property
    def outputs(self) -> Table:
        """The outputs of all targets below each other."""
        rows = [
            {"target": name, **row}
            for name, result in self.targets.items()
            if "comparison" in result.artifacts
            for row in result.outputs
        ]
        return table_of(f"{self.project}: outputs", rows, ("target", *OUTPUT_COLUMNS))

    @property
    def steps(self) -> Table:
        """The nodes of the build, in order."""
        rows = tuple((node.name, node.how, round(node.seconds, 3)) for node in self.nodes)
        return Table(f"{self.project}: nodes", ("node", "how", "seconds"), rows)

    def to_pandas(self) -> Any:
        """`outputs` as a pandas.DataFrame."""
        return self.outputs.to_pandas()

    def _repr_html_(self) -> str:
        return self.outputs._repr_html_()
