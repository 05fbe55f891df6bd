"""Verdicts: what a target makes of a case, once its file was built, run and compared.

    int8, int16     the operator computes in integers
    partly float    some of its nodes do
    float           none does: it is the CPU's, or float in the file
    refused: why    one error, which names a node of the case and has a hint
    WRONG: figures  anything else

A file must give the shape and type of the model, finite numbers, and

    |file - float|   <= SLACK * D + CODES * s       D: what one code at every tensor does (Noise)
    cosine           >= COSINE, where the output is more than what is allowed
    |file - engine|  <= what the target states, in codes s of the output

where s is the scale of the output, 0 for one in float.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npumake.engine.tflite_rules import TWICE
from npumake.errors import PipelineError
from npumake.kernels.measure import agreement
from npumake.quant.calibration.minmax_observer import NotFiniteError
from npumake.targets.reader import read_target
from npumake.targets.target import Target
from operators.builds import Built, Model, Width, hybrid
from operators.case import Case
from operators.large import is_large

SLACK, CODES, COSINE = 1.25, 2.0, 0.99
STEPS = frozenset(
    {"Cast", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Round"}
    | {"Sign"}
)
FLOAT = 1e-4  # of the largest value: what the order of float32 sums may change
DRAWS = 8
UNSEEN = 0.01  # of the places: a tie within one code that no draw decides as the file does
REFUSED, WRONG = "refused", "WRONG"
FAILS = re.compile(r": (\S+) fails with exit status.*")  # what follows is the compiler's


@dataclass(frozen=True)
class Column:
    """A target at a width. `codes`: how far its file may be from the integer engine."""

    name: str
    target: Callable[[], Target]
    width: Width = "int8"
    codes: float = 0.0


COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        *(
            Column(f"hybrid {rounding}", lambda rounding=rounding: hybrid(rounding))
            for rounding in ("half_even", "half_up", "half_away", "twice")
        ),
        Column("hybrid int16", lambda: hybrid("half_away"), "int16"),
        Column("tflite", lambda: read_target("tflite")),
        Column("tflite int16", lambda: read_target("tflite"), "int16"),
        Column("ethos-u55-128", lambda: read_target("ethos-u55-128")),
        Column("ethos-u55-128 int16", lambda: read_target("ethos-u55-128"), "int16"),
        Column("iree-cpu", lambda: read_target("iree-cpu"), codes=1.0),
        Column("onnx", lambda: read_target("onnx"), codes=1.0),
        Column("openvino-cpu", lambda: read_target("openvino-cpu"), codes=1.0),
    )
}
# Of a large case the other roundings would only repeat the placement.
ONCE = frozenset({"hybrid half_up", "hybrid half_away", "hybrid twice"})


def columns_of(case: Case) -> tuple[str, ...]:
    return tuple(name for name in COLUMNS if not (is_large(case) and name in ONCE))


def column_of(name: str) -> Column:
    """Of the table; any other target has its int8 column."""
    return COLUMNS[name] if name in COLUMNS else Column(name, lambda: read_target(name))


@dataclass(frozen=True)
class Measured:
    """What held one column to float and to the engine."""

    model: Model
    built: Built
    column: Column

    @cached_property
    def draws(self) -> list[np.ndarray]:
        count = DRAWS if self.model.meant.dtype.kind == "f" else 4 * DRAWS
        return self.model.noisy(self.built, count)

    @cached_property
    def allowed(self) -> float:
        """D, the largest that one code at every tensor does to the output."""
        meant = self.model.meant
        return max(float(np.abs(np.subtract(draw, meant)).max(initial=0)) for draw in self.draws)

    def wrong(self, found: np.ndarray) -> str | None:
        """Why the output of a file is not right; None where it is."""
        meant = self.model.meant
        if found.shape != meant.shape:
            return f"shape {list(found.shape)}, not {list(meant.shape)}"
        if found.dtype.kind != meant.dtype.kind:
            return f"type {found.dtype}, not {meant.dtype}"
        if meant.dtype.kind != "f":
            return self._other_places(found)
        if not np.isfinite(found).all():
            return "not finite"
        return self._far_from_float(found) or self._far_from_engine(found)

    def _other_places(self, found: np.ndarray) -> str | None:
        """Those of the engine, where the target is bit-exact; those that one code of noise gives,
        but for a few that lie so close that no draw met them."""
        if not self.column.codes and "float" not in placement(self.built):
            (engine,) = self.built.engine(self.model.feeds[0])
            if not np.array_equal(found, engine):
                return f"{(found != engine).sum()} of {found.size} places beside the engine"
        known = np.any([found == draw for draw in (self.model.meant, *self.draws)], axis=0)
        others = int((~known).sum())
        few = max(1, int(UNSEEN * known.size))
        return f"{others} of {known.size} places are others" if others > few else None

    def _far_from_float(self, found: np.ndarray) -> str | None:
        meant = self.model.meant
        off = float(np.abs(np.subtract(found, meant)).max(initial=0))
        step = self.built.scale or 0.0
        bound = SLACK * self.allowed + CODES * step + FLOAT * float(np.abs(meant).max(initial=0))
        bound += self._by_design()
        cosine = agreement(meant, found).cosine
        is_nothing = float(np.abs(meant).max(initial=0)) <= bound
        if off > bound or (cosine < self._least_cosine() and not is_nothing):
            return f"cosine {cosine:.4f}, off by {off:.4g} where {bound:.4g} is allowed"
        return None

    def _least_cosine(self) -> float:
        """A function with steps jumps where one code of noise crosses one; probabilities of 196
        classes are a code or two."""
        has_steps = not STEPS.isdisjoint(node.op_type for node in self.built.nodes())
        if not has_steps and not is_large(self.model.case):
            return COSINE
        return min(COSINE, *(agreement(self.model.meant, draw).cosine for draw in self.draws))

    def _by_design(self) -> float:
        """What TensorFlow Lite's own integer kernels leave out, and int16 sees: a linear Resize
        counts pixels of the input in steps of 2**-10, i of them for output i; a Softmax of int16
        reads its exponentials from a table."""
        if self.built.target.rounding != TWICE:
            return 0.0
        operators, meant = {node.op_type for node in self.built.nodes()}, self.model.meant
        if not meant.ndim or not meant.size:
            return 0.0
        resized = float(np.ptp(meant)) * max(meant.shape) * 2.0**-11
        tabled = 2.0**-11 * max(float(np.abs(meant).max(initial=0)), 1.0)
        wide = "int16" in {tensor.dtype for tensor in self.built.program.tensors.values()}
        return resized * ("Resize" in operators) + tabled * (wide and "Softmax" in operators)

    def _far_from_engine(self, found: np.ndarray) -> str | None:
        (engine,) = self.built.engine(self.model.feeds[0])
        off = float(np.abs(np.subtract(found, engine)).max(initial=0))
        step, codes = self.built.scale or 0.0, self.column.codes
        if "float" in placement(self.built):  # float32 sums in another order: a neighbor, at most
            codes = max(codes, 1.0)
        rest = FLOAT * float(np.abs(engine).max(initial=0)) if not step else 0.01 * step
        bound = codes * max(step, 2 * self.allowed) + rest
        if off > bound:
            unit = f"{off / step:.1f} codes" if step else f"{off:.4g}"
            return f"{unit} beside the integer engine, off by {off:.4g} of {bound:.4g}"
        return None


def placement(built: Built) -> str:
    """Where the program computes the operator, and in which type at the narrowest."""
    on_cpu = [step.op == "onnx" for step in built.steps()]
    if all(on_cpu) and on_cpu:
        return "float"
    if any(on_cpu):
        return "partly float"
    types = {built.program.tensors[name].dtype for step in built.steps() for name in step.outputs}
    return "int16" if "int16" in types and "int8" not in types else "int8"


def refusal(error: PipelineError, model: Model) -> str:
    """WRONG for one that names no node of the case or has no hint."""
    nodes = model.case.proto().graph.node
    names = {name for node in nodes for name in (node.name, *node.output) if name}
    what = FAILS.sub(r" (\1)", " ".join(error.what.split()))
    quoted = re.findall("`([^`]+)`", error.what)  # a node that a pass writes has its name longer
    named = any(q == n or q.startswith(f"{n}_") for q in quoted for n in names)
    named = named or any(node.op_type in what for node in nodes)
    if isinstance(error, NotFiniteError):  # the stage `statistics` finds the node, and a hint
        return f"{REFUSED}: {what}"
    if not named:
        return f"{WRONG}: the error names no node: {what[:160]}"
    if not error.hint:
        return f"{WRONG}: the error has no hint: {what[:160]}"
    return f"{REFUSED}: {what[:160]}"


def traceback(error: Exception) -> str:
    return f"{WRONG}: traceback of {type(error).__name__}: {str(error)[:160]}"
