"""The result of a comparison: how close every node and output stays to the float model."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from npumake import digest
from npumake.errors import CacheError
from npumake.kernels.measure import Agreement

DIGITS = 6


@dataclass(frozen=True)
class Distance:
    """Error of a tensor against the float one, over all samples (npumake.kernels.measure)."""

    mse: float
    mre: float | None
    sqnr_db: float | None  # None without an error or without a signal
    chebyshev: float
    l1: float
    l2: float


@dataclass(frozen=True)
class NodeRow:
    """A node: the unit it runs `on`, the threshold of its inputs, and the error of its output.
    Figures are None in rows that only the vendor's tool has."""

    node: str
    on: str
    subgraph: int | None
    type: str
    cosine: float | None
    calibrated_cosine: float | None
    threshold: float | None
    dtype: str
    calibrated: Distance
    quantized: Distance
    origin: tuple[str, ...] = ()  # the nodes of the trained model that it computes


@dataclass(frozen=True)
class OutputRow:
    """A model output, quantized against float."""

    name: str
    cosine: float
    calibrated_cosine: float
    calibrated: Distance
    quantized: Distance


@dataclass(frozen=True)
class WorstNode:
    """The node with the largest error of its own (diagnosis.rank_causes).

    `lost` is the noise that it adds to the worst output, as a share of that output's energy;
    `cause` a remark on its grids. `remedy` is a line of YAML, empty if none helped, and `tried`
    its cosines without and with it (diagnosis.suggestions). `search` is YAML to try next.
    """

    node: str
    lost: float
    origin: tuple[str, ...]
    cause: str
    remedy: str
    tried: tuple[float, ...] = ()
    search: str = ""
    # The key of a vendor's file for the form of the inputs.
    input_settings: str = ""


@dataclass(frozen=True)
class Comparison:
    """`rows` are those that the vendor's tool lists; `nodes` those of the graph, if they differ."""

    target: str
    samples: int
    rows: tuple[NodeRow, ...]
    outputs: tuple[OutputRow, ...]
    notes: tuple[str, ...] = ()  # e.g. limits of the vendor's own tool
    # Only if an output's cosine is low.
    worst_node: WorstNode | None = None
    nodes: tuple[NodeRow, ...] = ()
    int16: float = 0.0  # share of the multiply-accumulates that read int16
    available: int = 0  # samples of the set, of which `samples` were compared

    suffix: ClassVar[str] = ".json"

    @property
    def coverage(self) -> str:
        """What the figures come from: `16 of 100 samples`."""
        share = f"{self.samples} of {self.available}" if self.samples < self.available else ""
        return f"{share or self.samples} sample{'s' * (self.available != 1)}"

    @property
    def of_graph(self) -> tuple[NodeRow, ...]:
        """One row for each node of the float graph in the target's form."""
        return self.nodes or self.rows

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Comparison:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            rows, nodes = (tuple(map(_row, document[name])) for name in ("rows", "nodes"))
            outputs = tuple(OutputRow(**_distances(output)) for output in document["outputs"])
            return cls(
                document["target"],
                document["samples"],
                rows,
                outputs,
                tuple(document["notes"]),
                _worst_node(document["worst_node"]),
                nodes,
                float(document["int16"]),
                document["available"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not a comparison: {error}", str(path)) from error


def distance(sums: Agreement) -> Distance:
    """The figures of these sums, rounded to DIGITS significant digits."""
    return Distance(
        rounded(sums.mse),
        _finite(sums.mre),
        _finite(sums.sqnr_db),
        rounded(sums.chebyshev),
        rounded(sums.l1),
        rounded(sums.l2),
    )


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else rounded(value)


def _row(document: dict[str, Any]) -> NodeRow:
    return NodeRow(**_distances(document) | {"origin": tuple(document["origin"])})


def _worst_node(document: dict[str, Any] | None) -> WorstNode | None:
    if document is None:
        return None
    lists: dict[str, Any] = {name: tuple(document[name]) for name in ("origin", "tried")}
    words: dict[str, Any] = {
        name: document[name] for name in ("node", "lost", "cause", "remedy", "search")
    }
    return WorstNode(**words, **lists, input_settings=document["input_settings"])


def _distances(document: dict[str, Any]) -> dict[str, Any]:
    return document | {name: Distance(**document[name]) for name in ("calibrated", "quantized")}
