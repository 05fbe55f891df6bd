"""What the corrections of a search bring on samples kept apart, over folds.

    python benchmarks/folds.py [--models yunet vww] [--targets ara240 rdk-x5] [--folds 5]
                               [--ways default best] [--switches even_depthwise] [--jobs 2]
                               [--calibrate 20]

Each fold draws the samples that calibrate; all others measure. All is in 8 bits. A figure is the
logarithm of a loss on the samples kept apart (search.fidelity), less another: -0.7 halves the
loss. It stands with its standard error over the folds.

loss      that of a search, and nothing subtracted
kept      a search's recipe, less the same recipe without this correction; one row for each that a
          search keeps in at least one of the folds, and has 0 in the others
searched  a search, less another to which the correction of `--switches` was not open
always    the correction on, less off, by `max` with the other trusted ones

Detectors have pictures of coco128, the others the samples of closest.py or recovery.py.
Models and pictures are beside the repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, cast

import closest
import numpy as np
from detectors import Bench
from heads import HEADS
from recovery import MODELS as CLASSIFIERS
from recovery import images

from npumake.data.samples import Samples
from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph
from npumake.project.sections import Calibration, Method, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.corrections import PER_CHANNEL, SWITCHES
from npumake.quant.search.fidelity import FloatReference, SampleOutputs
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.trials import TRUSTED_SWITCHES
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

NARROW = Quantization(most_int16=0.0)
WAYS = {"default": Calibration("default"), "best": Calibration(recipe="best")}
ALWAYS = "always"  # a way without a search
DETECTORS = ("yunet", "ultraface", "fastestdet", "yolox")
DETECTOR_PICTURES = 64  # that calibrate, of 128; others have as many samples as in closest.py
SWITCHED = [name for name in SWITCHES if name != PER_CHANNEL]
Changes = Mapping[str, float]  # of the logarithm of the loss, by title


class Trial(NamedTuple):
    """One fold of one way."""

    model: str
    target: str
    way: str
    fold: int
    switches: tuple[str, ...]
    calibration_samples: int


@dataclass(frozen=True)
class Fold:
    """The samples that calibrate, and the float model's outputs for those kept apart."""

    graph: Graph
    target: str
    samples: Samples
    statistics: Statistics
    apart: Sequence[Feeds]
    reference: FloatReference

    @classmethod
    def of(cls, trial: Trial) -> Fold:
        graph, feeds = model_of(trial.model)
        order = np.random.default_rng(trial.fold).permutation(len(feeds))
        parts = order[: trial.calibration_samples], order[trial.calibration_samples :]
        drawn, apart = ([feeds[k] for k in sorted(part)] for part in parts)
        samples = Samples(tuple(map(str, range(trial.calibration_samples))), drawn.__getitem__)
        reference = FloatReference(outputs(graph, apart))
        return cls(graph, trial.target, samples, observe(graph, samples), apart, reference)

    def searched(self, calibration: Calibration, asked: Quantization) -> tuple[Recipe, float]:
        """The recipe, and the logarithm of its loss."""
        target = read_target(self.target)
        of_samples = (self.graph, self.statistics, self.samples, calibration, target)
        found = recipe(*of_samples, quantization=asked)
        tensors = calibrated(self.graph, found, self.samples, target, quantization=asked)
        figure = self.reference.figure(outputs(quantized(tensors, target), self.apart))
        return found, math.log(1.0 - figure.close.all)

    def loss(self, found: Recipe, switches: Sequence[str]) -> float:
        """Of the recipe's method with these switches and no search."""
        method = cast(Method, found.method)
        calibration = Calibration(method, symmetric=found.symmetric)
        if found.percentile is not None:
            calibration = replace(calibration, percentile=found.percentile)
        return self.searched(calibration, fixed(switches))[1]


def model_of(name: str) -> tuple[Graph, Sequence[Feeds]]:
    if name in HEADS:
        bench = Bench(name)
        halves = (bench.feeds(trained=False, measured=measured) for measured in (False, True))
        return bench.graph, [feed for half in halves for feed in half]
    if name in closest.MODELS:
        graph = closest.MODELS[name].read()
        return graph, closest.feeds(name, graph)
    graph = CLASSIFIERS[name].read()
    return graph, images(CLASSIFIERS[name], graph)[0]


def outputs(model: Graph, feeds: Sequence[Feeds]) -> SampleOutputs:
    session = OrtSession(model.to_bytes())
    return list(side_by_side(lambda feed: session.run(None, feed), feeds))


def fixed(switches: Sequence[str]) -> Quantization:
    """These switches on, all others off."""
    settings: dict[str, Any] = {name: name in switches for name in SWITCHED}
    if "round_weights" in switches:
        settings["round_weights"] = "adaptive"
    return replace(NARROW, **settings)


def changes(trial: Trial) -> Changes:
    fold = Fold.of(trial)
    if trial.way == ALWAYS:
        found = Recipe("max", read_target(trial.target).activations.symmetric, {})
        made = {}
        for name in trial.switches:
            others = [other for other in TRUSTED_SWITCHES if other != name]
            made[f"always {name}"] = fold.loss(found, [*others, name]) - fold.loss(found, others)
        return made
    found, loss = fold.searched(WAYS[trial.way], NARROW)
    kept = found.switches
    whole = fold.loss(found, kept) if kept else loss
    made = {"loss": loss}
    made |= {
        f"kept {name}": whole - fold.loss(found, [other for other in kept if other != name])
        for name in kept
    }
    for name in trial.switches:
        closed = replace(NARROW, **cast(Any, {name: False}))
        made[f"searched {name}"] = loss - fold.searched(WAYS[trial.way], closed)[1]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = list(dict.fromkeys([*DETECTORS, *closest.MODELS, *CLASSIFIERS]))
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--targets", nargs="+", default=["ara240", "rdk-x5"])
    parser.add_argument("--ways", nargs="+", choices=[*WAYS, ALWAYS], default=list(WAYS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--switches", nargs="*", choices=SWITCHED, default=[])
    parser.add_argument("--calibrate", type=int, metavar="N", help="samples that calibrate")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    rows = [*product(given.models, given.targets, given.ways)]
    usual = {name: DETECTOR_PICTURES if name in DETECTORS else closest.CALIBRATE for name in names}
    trials = [
        Trial(name, target, way, fold, tuple(given.switches), given.calibrate or usual[name])
        for (name, target, way), fold in product(rows, range(given.folds))
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = pool.map(changes, trials)
        for row in rows:
            print_row(" ".join(row), [next(found) for _ in range(given.folds)])


def print_row(title: str, by_fold: Sequence[Changes]) -> None:
    """The mean of each change and its standard error, then each fold."""
    for name in sorted({name for made in by_fold for name in made}):
        values = np.array([made.get(name, 0.0) for made in by_fold])
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        each = " ".join(f"{made[name]:+.2f}" if name in made else "-" for made in by_fold)
        print(f"{title} {name:<28} {values.mean():+.3f} ± {error:.3f}   {each}", flush=True)


if __name__ == "__main__":
    main()
