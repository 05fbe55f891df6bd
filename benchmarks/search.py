"""The time of the search for the best recipe, and a check that it finds the same one.

    NPUMAKE_SHARED=../shared python benchmarks/search.py [--models yolox] [--targets ara240]
                                   [--samples 64] [--method default]

For each model and chip it prints the CPU seconds of all threads, the selected recipe, and its
digest. An optimization of the search must not change the digest.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from calibration import MODELS, prepared

from npumake.data.samples import Samples
from npumake.digest import of_file
from npumake.graph import Graph
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

METHODS = {"best": Calibration(recipe="best"), "default": Calibration("default")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["mobilenet", "squeezenet", "yolox"])
    parser.add_argument("--targets", nargs="+", default=["ara240", "rdk-x5"])
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--method", choices=METHODS, default="best")
    given = parser.parse_args()
    assert set(given.models) <= set(MODELS), f"known: {', '.join(MODELS)}"
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            prepared(name, Path(folder), given.samples)
            for target in given.targets:
                row = searched(Path(folder), target, METHODS[given.method])
                print(f"{name:<11} {target:<8} {row}", flush=True)


def searched(folder: Path, target: str, calibration: Calibration) -> str:
    graph, samples = Graph.load(folder / "float.onnx"), Samples.load(folder / "calibrate.npz")
    statistics = observe(graph, samples)
    start = time.process_time()
    found = recipe(graph, statistics, samples, calibration, read_target(target))
    taken = time.process_time() - start
    found.save(folder / "recipe.json")
    chosen = " + ".join((found.method, *found.switches))
    return f"{taken:6.1f} s of CPU   {of_file(folder / 'recipe.json')[:16]}   {chosen}"


if __name__ == "__main__":
    main()
