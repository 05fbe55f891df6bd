"""Verdict: every gate with its measured value; for an unmet one the nodes that lose most, and YAML
that was tried."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from npumake import digest
from npumake.errors import CacheError

MAX_NODES = 3


@dataclass(frozen=True)
class NodeLoss:
    """`lost` is the cosine that the node alone costs; None: it runs on the CPU. `origin` names
    the nodes of the trained model that it computes."""

    node: str
    lost: float | None
    origin: tuple[str, ...] = ()

    def __str__(self) -> str:
        loss = "on the CPU" if self.lost is None else f"loses {self.lost:.6f}"
        trained = ", ".join(name for name in self.origin if name != self.node)
        return f"{self.node}  {loss}" + (f", of {trained} in the trained model" if trained else "")


@dataclass(frozen=True)
class GateSuggestion:
    """YAML that was tried, with the gate's figure without it and with it.

    `suffices`: the gate is met with it. Trials run in float with Q/DQ, so `before` is close to
    the measured figure, not equal to it.
    """

    yaml: str
    before: float
    after: float
    suffices: bool


@dataclass(frozen=True)
class GateResult:
    """One gate; if unmet, the MAX_NODES nodes that lose most and a suggestion."""

    index: int
    what: str  # a sentence
    met: bool
    nodes: tuple[NodeLoss, ...] = ()
    suggestion: GateSuggestion | None = None
    unlike: str = ""  # how the calibration data differ, if that is the cause

    @property
    def advice(self) -> str:
        """The changes to make, in several lines."""
        if self.unlike:
            hint = "calibrate with data like those that are evaluated: see `data:` and `dataset:`"
            return f"{self.unlike}\n{hint}"
        lines = ["largest losses:", *(f"  {node}" for node in self.nodes)] if self.nodes else []
        if not self.nodes and self.suggestion is None:
            return "`npumake perf` lists the cost of each layer"
        if self.suggestion is None:
            return "\n".join([*lines, "higher precision for these nodes did not help"])
        trial = self.suggestion
        end = "meets the gate" if trial.suffices else "helps; `npumake precision` searches further"
        remark = f"# tried: {_figure(trial.before)} -> {_figure(trial.after)}, {end}"
        head = "set `quantization` in project.yaml to:"
        return "\n".join([*lines, head, remark, trial.yaml.rstrip()])


@dataclass(frozen=True)
class Verdict:
    target: str
    gates: tuple[GateResult, ...]

    suffix: ClassVar[str] = ".json"

    @property
    def unmet(self) -> Sequence[GateResult]:
        return [gate for gate in self.gates if not gate.met]

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Verdict:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            return cls(document["target"], tuple(map(_gate_result, document["gates"])))
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not a verdict: {error}", str(path)) from error


def _gate_result(document: Any) -> GateResult:
    nodes = [
        NodeLoss(loss["node"], loss["lost"], tuple(loss["origin"])) for loss in document["nodes"]
    ]
    suggestion = document["suggestion"] and GateSuggestion(**document["suggestion"])
    facts = {name: document[name] for name in ("index", "what", "met", "unlike")}
    return GateResult(nodes=tuple(nodes), suggestion=suggestion, **facts)


def _figure(value: float) -> str:
    return f"{value:.6g}"
