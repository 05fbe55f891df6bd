"""check: where the nodes of a model file would run on a chip, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npumake.api.table import Cell, Table, table_of
from npumake.cli.model_file import held_files
from npumake.debug.model_check import ModelCheck, check_model, prepared
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.graph import open_dimensions
from npumake.targets.reader import read_target

COLUMNS = ("node", "on", "subgraph", "type", "reason")


@dataclass(frozen=True)
class CheckResult:
    """`unsupported` are node names by operator, which run neither on the NPU nor on the CPU;
    `float_nodes` compute in float between nodes of the NPU; `notes` are limits and remarks."""

    target: str
    nodes: Table
    unsupported: Mapping[str, Sequence[str]]
    float_nodes: Sequence[str]
    notes: Sequence[str]

    @property
    def runs(self) -> bool:
        """Whether every node runs."""
        return not self.unsupported

    def _repr_html_(self) -> str:
        return self.nodes._repr_html_()


def check(
    model: str | Path,
    target: str,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> CheckResult:
    """The placement of a model file's nodes on the NPU or the CPU of `target`; nothing is built.

    `shapes` closes open dimensions, by input.

    >>> import npumake
    >>> result = npumake.check("projects/digits/model.onnx", "rdk-x5")
    >>> result.runs, result.nodes["stem_conv"]["on"]
    (True, 'BPU')

    Raises GraphError for a model that cannot be read, and for an open dimension without a shape;
    ProjectError for an unknown target.
    """
    chip = read_target(target)
    files = held_files(Path(model), None)
    graph = read_model(files.model.read(), files.model.name, files.weights)
    for value in graph.inputs:
        if dims := (shapes or {}).get(str(value.name)):
            graph.set_input_shape(value, tuple(dims))
        elif text := open_dimensions(value):
            hint = f'shapes={{"{value.name}": [...]}}'
            raise GraphError(f"input `{value.name}` leaves dimensions open: {text}", "shapes", hint)
    return _result(check_model(prepared(graph, Path(model).suffix.lower() == ".onnx"), chip))


def _result(checked: ModelCheck) -> CheckResult:
    rows: list[dict[str, Cell]] = [
        {
            "node": row.node,
            "on": row.on,
            "subgraph": row.subgraph,
            "type": row.type,
            "reason": row.why,
        }
        for row in checked.rows
    ]
    table = table_of(f"{checked.target}: placement", rows, COLUMNS)
    return CheckResult(checked.target, table, checked.unsupported, checked.leaks, checked.notes)
