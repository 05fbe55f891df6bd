"""What each stage of a project costs: CPU seconds and bytes, fixed and per image.

    python benchmarks/cluster_stages.py [--images 32 500] [--out stages.json]

MobileNet v1 0.25 of 224 x 224 with photographs, method `max`, one target, one thread. The
figures of two builds give a line for each stage, seconds = fixed + images * each, which
benchmarks/cluster_scale.py reads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from npumake.cli.projects import builds
from npumake.make.build import Build
from npumake.make.maker import make

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
MODEL = SHARED / "models/classification/mobilenet_v1_0.25_224_float.tflite"
PROJECT = """\
model: {{path: {model}}}
inputs: {{'*': {{type: rgb, layout: NHWC, mean: 127.5, scale: 0.00784313725490196}}}}
data:
  '*':
    files: samples/*.jpg
    channels: rgb
    transforms: [padded_center_crop, resize: {{target_size: 224, mode: opencv}}]
calibration: {{method: max}}
targets: [rdk-x5]
"""


def cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measured(root: Path, images: int) -> dict[str, tuple[float, int]]:
    """(CPU seconds, bytes of the artifact) by stage."""
    project = root / "projects" / "mobilenet"
    (project / "samples").mkdir(parents=True)
    for picture in sorted((SHARED / "images/imagenet500").glob("*.jpg"))[:images]:
        shutil.copy(picture, project / "samples")
    project.joinpath("project.yaml").write_text(PROJECT.format(model=MODEL))
    (build,) = (build for _, build in builds(root) if isinstance(build, Build))
    figures = {}
    for node in build.plan.nodes:
        began = cpu_seconds()
        make(build, node)
        figures[node.stage] = cpu_seconds() - began, build.artifact(node).stat().st_size
        print(f"{images:4} images  {node.stage:<18} {figures[node.stage][0]:7.2f} s", flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, nargs=2, default=[32, 500])
    parser.add_argument("--out", type=Path, default=Path("stages.json"))
    arguments = parser.parse_args()
    if not MODEL.is_file():
        sys.exit(f"no model at {MODEL}")
    os.environ["NPUMAKE_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        few, many = (measured(Path(folder, str(n)), n) for n in arguments.images)
    span = arguments.images[1] - arguments.images[0]
    rows = {}
    for stage, (seconds, size) in many.items():
        each, bytes_each = (seconds - few[stage][0]) / span, (size - few[stage][1]) / span
        each, bytes_each = max(each, 0.0), max(bytes_each, 0.0)
        rows[stage] = {
            "fixed_s": round(max(seconds - each * arguments.images[1], 0.0), 3),
            "image_s": round(each, 5),
            "fixed_bytes": round(max(size - bytes_each * arguments.images[1], 0.0)),
            "image_bytes": round(bytes_each),
        }
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
