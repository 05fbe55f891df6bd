"""The cost of running each compiled file: a first build with the check on 8 samples, and without.

    NPUMAKE_SHARED=../shared python benchmarks/compiled_check.py [--samples 64] [--targets tflite]

Each model is built from scratch for one target at a time, calibrated with `max` on noise. The best
of three builds counts, in turns. `cpu` has the seconds of all processes and threads, `clock` the
waiting time. On a busy machine only the former is meaningful.
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
MODELS = (
    "classification/mobilenet_v1_0.25_224_float.tflite",
    "classification/vww_96_float.tflite",
    "detection/ultraface_slim320_rawhead.onnx",
)
TURNS = 3


class Seconds(NamedTuple):
    cpu: float
    clock: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--targets", nargs="+", default=["rdk-x5", "tflite", "onnx"])
    given = parser.parse_args()
    print(f"{'model':<30} {'target':<8} {'cpu':>8} {'check':>7} {'clock':>8} {'check':>7}")
    for model in MODELS:
        for target in given.targets:
            print(row(SHARED / "models" / model, target, given.samples), flush=True)


def row(model: Path, target: str, samples: int) -> str:
    turns = [[first_build(model, target, samples, n) for n in ('"off"', "8")] for _ in range(TURNS)]
    without, whole = (
        Seconds(*map(min, zip(*each, strict=True))) for each in zip(*turns, strict=True)
    )
    shares = [1 - a / b for a, b in zip(without, whole, strict=True)]
    figures = f"{whole.cpu:6.2f} s {shares[0]:7.1%} {whole.clock:6.2f} s {shares[1]:7.1%}"
    return f"{model.stem:<30} {target:<8} {figures}"


def first_build(model: Path, target: str, samples: int, checked: str) -> Seconds:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "projects" / "m"
        project.mkdir(parents=True)
        shutil.copy(model, project / f"model{model.suffix}")
        project.joinpath("project.yaml").write_text(
            f"model: {{path: model{model.suffix}}}\n"
            f"data: {{'*': {{random: {samples}}}}}\n"
            "calibration: {method: max}\n"
            f"comparison: {{compiled: {checked}}}\n"
            f"targets: [{target}]\n"
        )
        command = [sys.executable, "-m", "npumake.cli.main", "build"]
        start, used = time.perf_counter(), _cpu()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return Seconds(_cpu() - used, time.perf_counter() - start)


def _cpu() -> float:
    """Seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
