"""Finds the node at which a compiler fails: the shortest run of operators that still fails.

It bisects first: most failures come from one operator, and half a network takes half the time. If
neither half fails alone, it shortens the run from its end, then from its start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from npumake.compilers.flatfile import FlatModel, written
from npumake.compilers.process import CompilerError, SlowError, limited
from npumake.errors import StageError

MAX_SECONDS = 120.0  # for all trials
TRIAL_SECONDS = 30.0  # seconds; a slower trial fails for another reason than the network
HINT = "replace the node, or build for another target: `tflite` takes the same network"


@dataclass(frozen=True)
class _Trials:
    model: FlatModel
    compiles: Callable[[bytes], object]
    until: float

    @property
    def left(self) -> float:
        return self.until - time.monotonic()

    def fail(self, start: int, end: int) -> bool:
        """Whether the compiler fails at only these operators."""
        try:
            with limited(max(min(TRIAL_SECONDS, self.left), 1.0)):
                self.compiles(written(*stretch(self.model, start, end)))
        except CompilerError:
            return True
        except SlowError:
            return False
        return False


def located(
    error: CompilerError, model: FlatModel, compiles: Callable[[bytes], object]
) -> StageError:
    """The error with the failing node, or with a run of nodes if the search exceeds
    MAX_SECONDS."""
    trials = _Trials(model, compiles, time.monotonic() + MAX_SECONDS)
    start, end = _shortened(trials, *_halved(trials, 0, len(model.operators)))
    nodes = list(dict.fromkeys(_node(model, at) for at in range(start, end)))
    first, last = nodes[0], nodes[-1]
    where = f"`{last}`" if len(nodes) == 1 else f"the nodes from `{first}` to `{last}`"
    return StageError(f"{where} cannot be compiled: {error.what}", error.where, HINT)


def _halved(trials: _Trials, start: int, end: int) -> tuple[int, int]:
    while end - start > 1 and trials.left > 0:
        middle = (start + end) // 2
        if trials.fail(start, middle):
            end = middle
        elif trials.fail(middle, end):
            start = middle
        else:
            break
    return start, end


def _shortened(trials: _Trials, start: int, end: int) -> tuple[int, int]:
    """Operators that fail only together: the first failing end, then the last failing start."""
    passes, fails = (start + end) // 2 if end - start > 1 else end - 1, end
    while fails - passes > 1 and trials.left > 0:
        middle = (passes + fails) // 2
        passes, fails = (passes, middle) if trials.fail(start, middle) else (middle, fails)
    end, first, beyond = fails, start, end
    while beyond - first > 1 and trials.left > 0:
        middle = (first + beyond) // 2
        first, beyond = (middle, beyond) if trials.fail(middle, end) else (first, middle)
    return first, end


def _node(model: FlatModel, at: int) -> str:
    operator = model.operators[at]
    return operator.node or model.tensors[operator.outputs[0]].name


def stretch(model: FlatModel, start: int, end: int) -> FlatModel:
    """A run of operators as a network: its inputs come from other operators, its outputs go to
    them."""
    inside = model.operators[start:end]
    produced = {index for operator in inside for index in operator.outputs}
    read = dict.fromkeys(index for operator in inside for index in operator.inputs if index >= 0)
    outside = [o for at, o in enumerate(model.operators) if not start <= at < end]
    needed = {*model.outputs, *(index for operator in outside for index in operator.inputs)}
    inputs = [i for i in read if i not in produced and model.tensors[i].values is None]
    return model._replace(
        operators=inside, inputs=inputs, outputs=[i for i in sorted(produced) if i in needed]
    )
