"""Compares the digests of artifacts before and after a change of the code.

    python benchmarks/same_bytes.py --write before.json --tree ../before
    python benchmarks/same_bytes.py --against before.json

It builds two example projects, and twelve shared models on random samples, for four targets. A list
has the SHA-256 of every model, statistic and compiled file, and of the sensitivities of three
models. Documents with text, such as comparison.json, are left out, because a sentence may change.
`--tree` names the checkout that builds, by default this one. Exits with 1 for any difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

REPO = Path(__file__).parents[1]
SHARED = Path(os.environ.get("NPUMAKE_SHARED", REPO.parent / "shared")) / "data"
TARGETS = ("rdk-x5", "ara240", "tflite", "ethos-u55-128")
EXAMPLES = ("digits", "shapes-detector")
WORDS = (".json", ".html", ".txt", ".md")
SAMPLES = 8
SEED = 0


class Case(NamedTuple):
    """A shared model, its inputs, and what its project has beyond the defaults."""

    file: str
    inputs: Mapping[str, tuple[int, ...]]
    settings: str = "calibration: {method: max}"
    sensitivity: bool = False


CASES = {
    "mnist": Case("classification/mnist_cntk.onnx", {"Input3": (1, 1, 28, 28)}),
    "resnet8": Case(
        "classification/cifar10_resnet8_float.tflite",
        {"input_1": (1, 32, 32, 3)},
        "calibration: {method: max}\n"
        "quantization: {round_weights: adaptive, bias_correction: true, migrate: true}",
        sensitivity=True,
    ),
    "resnet8-int8": Case(
        "classification/cifar10_resnet8_int8.tflite",
        {"input_1_int8": (1, 32, 32, 3)},
        "calibration: {method: load}",
    ),
    "vww": Case(
        "classification/vww_96_float.tflite",
        {"input_1": (1, 96, 96, 3)},
        "calibration: {method: kl}\n"
        "quantization: {widen: true, widen_sensitive: true, bias_correction: true}",
    ),
    "vww-int8": Case(
        "classification/vww_96_int8.tflite",
        {"input_1_int8": (1, 96, 96, 3)},
        "calibration: {method: load}",
    ),
    "kws": Case(
        "audio/kws_tiny_float.tflite",
        {"input_1": (1, 49, 10, 1)},
        "calibration: {method: max, recipe: best}",
        sensitivity=True,
    ),
    "kws-int8": Case(
        "audio/kws_tiny_int8.tflite",
        {"input_1": (1, 49, 10, 1)},
        "calibration: {method: load}",
    ),
    "anomaly": Case(
        "anomaly/ad01_fp32.tflite",
        {"input_1": (1, 640)},
        "calibration: {method: mix}\nquantization: {clip_weights: true, round_weights: adaptive}",
    ),
    "mobilenet": Case(
        "classification/mobilenet_v1_0.25_224_float.tflite",
        {"input": (1, 224, 224, 3)},
        "calibration: {method: max_percentile}\n"
        "quantization: {equalize: true, bias_correction: true}",
    ),
    "ultraface": Case(
        "detection/ultraface_slim320_rawhead.onnx",
        {"input": (1, 3, 240, 320)},
        "calibration: {method: default}",
    ),
    "yunet": Case("detection/yunet_n_320_320.onnx", {"input": (1, 3, 320, 320)}, sensitivity=True),
    "yolov5": Case(
        "detection/sscma_yolov5tiny_face_96.onnx",
        {"input": (1, 3, 96, 96)},
        "calibration: {method: modelwise}",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=REPO)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", default=[*EXAMPLES, *CASES])
    arguments = parser.parse_args()
    digests: dict[str, str] = {}
    for name in arguments.only:
        start = time.perf_counter()
        of_case = built(name, arguments.tree.resolve())
        print(
            f"{name:<16} {len(of_case):3} artifacts {time.perf_counter() - start:6.1f} s",
            flush=True,
        )
        digests |= of_case
    if arguments.write:
        arguments.write.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n")
    if not arguments.against:
        return 0
    before = json.loads(arguments.against.read_text())
    return report({k: v for k, v in before.items() if k.split("/")[0] in arguments.only}, digests)


def report(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Prints every difference; the exit status."""
    differences = [
        name for name in sorted({*before, *after}) if before.get(name) != after.get(name)
    ]
    for name in differences:
        kind = "differs" if name in before and name in after else "is in one list only"
        print(f"{name} {kind}")
    print(f"{len(before)} artifacts before, {len(after)} after, {len(differences)} differences")
    return bool(differences)


def built(name: str, tree: Path) -> dict[str, str]:
    """Digests of a project's artifacts by `project/file`, built by the code of `tree`."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "projects" / name
        write_project(project, name)
        nodes = json.loads(npumake(tree, project, "list", "--json"))
        compiled = [node["node"] for node in nodes if node["node"].endswith("/compiled")]
        npumake(tree, project, "build", *compiled)
        digests = {f"{name}/{file.name}": _sha256(file.read_bytes()) for file in artifacts(project)}
        if name in CASES and CASES[name].sensitivity:
            output = npumake(
                tree, project, "debug", "get-sensitivity-of-nodes", f"{name}:{TARGETS[0]}"
            )
            digests[f"{name}/sensitivity"] = _sha256("\n".join(_numbers(output)).encode())
    return digests


def write_project(project: Path, name: str) -> None:
    if name in EXAMPLES:
        ignored = shutil.ignore_patterns("out", ".doit.db*", "__pycache__")
        shutil.copytree(REPO / "projects" / name, project, ignore=ignored)
        document = (project / "project.yaml").read_text()
        listed = "".join(f"  - {target}\n" for target in TARGETS)
        document, _, _ = document.rpartition("\ntargets:\n")
        (project / "project.yaml").write_text(f"{document}\ntargets:\n{listed}")
        return
    case, rng = CASES[name], np.random.default_rng(SEED)
    project.mkdir(parents=True)
    shutil.copy(SHARED / "models" / case.file, project)
    lines = [f"model: {{path: {Path(case.file).name}}}", "data:"]
    for number, (tensor, shape) in enumerate(case.inputs.items()):
        folder = project / f"samples{number}"
        folder.mkdir()
        for sample in range(SAMPLES):
            values = rng.normal(0, rng.uniform(0.2, 1), shape).astype(np.float32)
            np.save(folder / f"{sample:02}.npy", values)
        lines.append(f"  {tensor}: {{files: {folder.name}/*.npy}}")
    lines += [case.settings, f"targets: [{', '.join(TARGETS)}]"]
    (project / "project.yaml").write_text("\n".join(lines) + "\n")


def npumake(tree: Path, project: Path, *arguments: str) -> str:
    """What the command printed, run by the code of `tree`."""
    run = subprocess.run(
        [sys.executable, "-m", "npumake.cli.main", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(tree / "pipeline")},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"{project.name}: {' '.join(arguments)}\n{run.stdout}{run.stderr}")
    return run.stdout


def artifacts(project: Path) -> Iterator[Path]:
    files = (file for file in sorted((project / "out").iterdir()) if file.is_file())
    return (file for file in files if file.suffix not in WORDS and not file.name.startswith("."))


def _numbers(text: str) -> list[str]:
    """The lines that have a figure, without their headings."""
    return [line for line in text.splitlines() if re.search(r"\d\.\d", line)]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
