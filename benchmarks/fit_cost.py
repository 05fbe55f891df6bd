"""Fits the cost model of bayes-e on published figures: `fitted` in rdk-x5.yaml.

    python benchmarks/fit_cost.py            the YAML block, with each model's held-out error
    python benchmarks/fit_cost.py --write    the same, written to the target's file

Two fits by least squares of the logarithm of estimate / figure, each with few free parameters:

    on_chip                           on the DDR bytes of hb_mapper's log
    conv, mixed, ddr, board           on its latencies, and on those of the board less `board`

The rates of tables, arithmetic and Concat are from a log of 202 layers (the middle of their range)
and not fitted. Neither are `lanes`: 1 to 16 fit equally well. A weak prior pulls each parameter to
its start value, which decides if no model depends on it (`mixed` without YOLO11).

A model's error is that of a fit without it. The form of the cost model was chosen with knowledge of
all models. The interval is two standard deviations of the logarithms of these errors. Models and
figures: benchmarks/costs.py, ../shared/oracle.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from costs import TARGET, Known, known

from npumake.kernels.arrays import Floats
from npumake.perf.fitted import seconds
from npumake.perf.layers import LayerCost, layers_of
from npumake.targets.cost import Fitted
from npumake.targets.reader import target_file

START = Fitted(
    conv=2e12,
    lanes=8,
    table=25e9,
    arithmetic=13e9,
    concat=18e9,
    mixed=13e9,
    ddr=6e9,
    on_chip=1 << 20,
    board=0.5e-3,
    seconds=(0.0, math.inf),
    latency=(1.0, 1.0),
    bytes=(1.0, 1.0),
    on=(),
)
FREE = ("conv", "mixed", "ddr", "board")
PULL = 0.05  # of a parameter to its start: a factor e costs as much as an error of 5 %
STEPS, NUDGE = 40, 1e-4
HEAD = "  fitted:"  # of the block, which is the last of `cost`


@dataclass(frozen=True)
class Errors:
    """The logarithm of estimate / figure by model, each from a fit without it."""

    by_model: Mapping[str, float]

    @property
    def interval(self) -> tuple[float, float]:
        """Two factors that an estimate is between."""
        spread = math.exp(2 * math.sqrt(float(np.mean(np.square(list(self.by_model.values()))))))
        return (float(f"{1 / spread:.2g}"), float(f"{spread:.3g}"))

    def __str__(self) -> str:
        sizes = sorted(abs(math.expm1(error)) for error in self.by_model.values())
        return f"median {100 * float(np.median(sizes)):.1f} %, worst {100 * sizes[-1]:.1f} %"


def fitted(models: Sequence[Known]) -> tuple[Fitted, Errors, Errors]:
    """The model with its intervals; the held-out errors of the latency, and of the DDR bytes."""
    best = fit(models)
    told = [model for model in models if not model.on_board]
    times = Errors({m.name: _off(m, fit(_less(models, m))) for m in models})
    moved = Errors({m.name: _off_bytes(m, _on_chip(_less(told, m))) for m in told})
    taken = [float(f"{edge([m.seconds for m in models]):.3g}") for edge in (min, max)]
    best = replace(best, seconds=tuple(taken), latency=times.interval, bytes=moved.interval)
    return best, times, moved


def fit(models: Sequence[Known]) -> Fitted:
    start = replace(START, on_chip=_on_chip([m for m in models if not m.on_board]))
    layers = {model.name: _layers(model, start.on_chip) for model in models}

    def residuals(x: Floats) -> Floats:
        trial = _with(start, x)
        errors = [_log_ratio(model, layers[model.name], trial) for model in models]
        return np.array([*errors, *(PULL * x)])

    return _with(start, least_squares(residuals, len(FREE)))


def least_squares(residuals: Callable[[Floats], Floats], size: int) -> Floats:
    """Gauss and Newton with half steps where a step makes it worse, from 0."""
    x = np.zeros(size)
    for _ in range(STEPS):
        here = residuals(x)
        slopes = np.stack([residuals(x + NUDGE * one) - here for one in np.eye(size)], 1) / NUDGE
        step = np.linalg.lstsq(slopes, -here, rcond=None)[0]
        while np.square(residuals(x + step)).sum() > np.square(here).sum():
            step = step / 2
            if np.abs(step).max() < 1e-9:
                return x
        x = x + step
    return x


def _with(start: Fitted, x: Floats) -> Fitted:
    return replace(
        start, **{name: getattr(start, name) * math.exp(v) for name, v in zip(FREE, x, strict=True)}
    )


def _log_ratio(model: Known, layers: Sequence[LayerCost], trial: Fitted) -> float:
    beside = trial.board if model.on_board else 0.0
    return math.log((sum(seconds(layers, trial)) + beside) / model.seconds)


def _off(model: Known, without: Fitted) -> float:
    return _log_ratio(model, _layers(model, without.on_chip), without)


def _off_bytes(model: Known, on_chip: int) -> float:
    assert model.ddr is not None
    return math.log(sum(layer.moved for layer in _layers(model, on_chip)) / model.ddr)


def _on_chip(models: Sequence[Known]) -> int:
    """The size, in steps of 32 KiB, that tells the bytes best."""
    sizes = range(1 << 18, 1 << 21, 1 << 15)
    return min(sizes, key=lambda size: sum(_off_bytes(m, size) ** 2 for m in models))


def _less(models: Sequence[Known], left_out: Known) -> list[Known]:
    return [model for model in models if model.name != left_out.name]


@cache
def _layers(model: Known, on_chip: int) -> tuple[LayerCost, ...]:
    return layers_of(model.program, on_chip, frozenset(model.program.inputs))


def said(times: Errors, moved: Errors) -> list[str]:
    """What `on` in the target's file says."""
    board = len(times.by_model) - len(moved.by_model)
    return [
        f"fitted on hb_mapper's log (1.24.3, hbdk 3.49.15) of {len(moved.by_model)} models, and on "
        f"{board} classifiers on an RDK X5",
        f"latency of a model left out of the fit: {times}",
        f"DDR bytes of a model left out of the fit: {moved}",
        "the interval is two standard deviations of these errors",
    ]


def block(model: Fitted, times: Errors, moved: Errors) -> str:
    """As it stands in the target's file."""
    rates = ("conv", "table", "arithmetic", "concat", "mixed", "ddr", "board")
    figures = {name: f"{getattr(model, name):.3e}" for name in rates}
    figures |= {name: str(getattr(model, name)) for name in ("lanes", "on_chip")}
    figures |= {name: str(list(getattr(model, name))) for name in ("seconds", "latency", "bytes")}
    lines = [f"    {name}: {figure}" for name, figure in figures.items()]
    on = [f'      - "{line}"' for line in said(times, moved)]
    errors = [
        f"    # {kind} of {name} without it: {100 * math.expm1(error):+.1f} %"
        for kind, found in (("latency", times), ("DDR bytes", moved))
        for name, error in found.by_model.items()
    ]
    return "\n".join([HEAD, *lines, "    on:", *on, *errors]) + "\n"


def written(text: str, new: str) -> str:
    """The target's file with the block in place of the one it has."""
    before, _, rest = text.partition(HEAD)
    behind = re.search(r"^(?! {4})", rest.removeprefix("\n"), re.MULTILINE)
    assert behind is not None
    return before + new + rest.removeprefix("\n")[behind.start() :]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    new = block(*fitted(list(known())))
    if parser.parse_args().write:
        file = target_file(TARGET)
        file.write_text(written(file.read_text(), new))
    print(new, end="")


if __name__ == "__main__":
    main()
