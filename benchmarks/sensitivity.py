"""What reusing the float model gives: seconds of brute force over those of `sensitivities`.

    NPUMAKE_SHARED=../shared python benchmarks/sensitivity.py [--samples 4] [--rounds 5]

MobileNet, every node, the same probes and the same figures. Brute force builds, for every node, the
model that quantizes it alone and runs it whole, over all samples; its float answers are worked out
once (`kept`) or, as where two model files are compared, for every node again (`whole`). It runs on
one thread; the probes on one, and on one per core. All take turns, and the medians are told.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pipeline.data.samples import Samples
from pipeline.debug.calibration_nodes import with_only, without
from pipeline.debug.probing import Sums
from pipeline.debug.sensitivity import Patient, groups_of, sensitivities
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.frontends import read_model
from pipeline.graph import shape, upgraded
from pipeline.kernels.measure import Agreement, agreement
from pipeline.passes import optimized
from pipeline.project.sections import Calibration
from pipeline.quant.observe import observe
from pipeline.quant.qdq import DEFAULT
from pipeline.quant.search import calibrated_with, plain
from pipeline.targets.reader import read_target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
FILE = SHARED / "models/classification/mobilenet_v1_0.25_224_float.tflite"


def patient(count: int) -> Patient:
    graph = optimized(upgraded(read_model(FILE.read_bytes(), FILE.name)).with_shapes())
    rng, (given,) = np.random.default_rng(0), graph.inputs
    noise = [rng.uniform(-1, 1, shape(given)).astype(np.float32) for _ in range(count)]
    feeds = [{str(given.name): one} for one in noise]
    recipe = plain(graph, observe(graph, feeds), Calibration("max"), True)
    made = calibrated_with(graph, recipe, read_target("rdk-x5"), DEFAULT)
    return Patient(made, Samples(tuple(map(str, range(count))), lambda index: feeds[index]))


def brute_force(examined: Patient, once: bool) -> dict[str, Sums]:
    real = without(examined.calibrated)
    meant = _answers(float_session(real), examined)
    found: dict[str, Sums] = {}
    for name, group in groups_of(examined, "node").items():
        if not once:
            meant = _answers(float_session(real), examined)
        places = [one for one in examined.nodes if one.name in group]
        made = _answers(float_session(with_only(real, places)), examined)
        sums = (agreement(a, b) for a, b in zip(meant, made, strict=True))
        found[name] = (sum(sums, Agreement()),)
    return found


def _answers(session: FloatSession, examined: Patient) -> list[np.ndarray]:
    return [session.run(None, feed)[0] for feed in examined.samples]


def probes(examined: Patient, at_once: int) -> dict[str, Sums]:
    forgetful = Patient(examined.calibrated, examined.samples, at_once=at_once)
    return sensitivities(forgetful, groups_of(forgetful, "node"))


def spent(what: Callable[[], dict[str, Sums]]) -> tuple[float, list[str]]:
    """Seconds, and the nodes by cosine."""
    start = time.perf_counter()
    found = what()
    seconds = time.perf_counter() - start
    return seconds, sorted(found, key=lambda name: found[name][0].cosine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    examined = patient(given.samples)
    cores = os.cpu_count() or 1
    ways: dict[str, Callable[[], dict[str, Sums]]] = {
        "whole": lambda: brute_force(examined, once=False),
        "kept": lambda: brute_force(examined, once=True),
        "probes, 1 thread": lambda: probes(examined, 1),
        f"probes, {cores} threads": lambda: probes(examined, cores),
    }
    rounds = [{name: spent(way) for name, way in ways.items()} for _ in range(given.rounds)]
    for each in rounds:
        assert len({tuple(order) for _, order in each.values()}) == 1, "the rankings differ"
    for name in ways:
        seconds = np.median([each[name][0] for each in rounds])
        whole, kept = (np.median([r[b][0] / r[name][0] for r in rounds]) for b in ("whole", "kept"))
        print(f"{name:<18} {seconds:6.3f} s   whole / it {whole:5.2f}   kept / it {kept:5.2f}")


if __name__ == "__main__":
    main()
