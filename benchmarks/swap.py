"""The time of a build with another calibration method, from a changed line of YAML.

    NPUMAKE_SHARED=../shared python benchmarks/swap.py [--runs 5] [--samples 100]

It builds a MobileNet whose statistics exist. Every run has another percentile, which is not in the
cache. `compiled` is the time until the compiled file exists; the comparison of every node, which
runs all samples three times, follows. The limit is 1 s, without inference. Python keeps the
bytecode of the package, as by default: compiling it again takes .3 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
MODEL = "classification/mobilenet_v1_0.25_224_float.tflite"
PROJECT = """
model: {{path: mobilenet.tflite}}
inputs: {{input: {{type: rgb, layout: NHWC, mean: 127.5, scale: 0.0078431373}}}}
data:
  input:
    files: samples/*.jpg
    transforms: [{{short_side_resize: {{short_size: 256}}}}, center_crop]
calibration: {{method: max_percentile, percentile: {percentile}}}
targets: [ara240]
"""


class Taken(NamedTuple):
    """Seconds; `cpu` is what is left of them on a machine with nothing else to do."""

    wall: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "mobilenet"
        (project / "samples").mkdir(parents=True)
        shutil.copy(SHARED / "models" / MODEL, project / "mobilenet.tflite")
        for image in sorted((SHARED / "images" / "imagenet500").glob("*.jpg"))[: given.samples]:
            shutil.copy(image, project / "samples")
        build(project, 0.98, "mobilenet")
        for run in range(2 * given.runs):
            what = ("mobilenet:ara240/compiled", "mobilenet")[run % 2]
            taken = build(project, 0.99 + run * 1e-3, what)
            print(f"{what:<28} {taken.wall:6.2f} s   {taken.cpu:6.2f} s of CPU")


def build(project: Path, percentile: float, what: str) -> Taken:
    (project / "project.yaml").write_text(PROJECT.format(percentile=percentile))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "npumake.cli.main", "build", what]
    usual = {k: value for k, value in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, cwd=project, env=usual, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall, cpu)


if __name__ == "__main__":
    main()
