"""The time of the samples stage for a folder of photographs, against decoding each once.

    python benchmarks/samples.py ../shared/data/images/imagenet500 [--runs 3] [--threads 1]

The floor reads, hashes and decodes each file with Pillow, one after the other. The stage does that,
resizes to 256, crops 224 and lints; its network starts with a BatchNormalization, so that the
preprocessing is checked too.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from workspace import paired

from npumake import digest
from npumake.borders.images import mark_images
from npumake.graph import parse_text
from npumake.project.files import SourceFile, pattern_files
from npumake.project.sections import FileGlob, Files, Input
from npumake.project.transforms import CenterCrop, ShortSideResize, Transform
from npumake.stages.samples import samples

SIZE = 224
NET = f"""<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 3, {SIZE}, {SIZE}] image) => (float[1, 3, {SIZE}, {SIZE}] y)
<float[3] one = {{1, 1, 1}}, float[3] mu = {{-5, -11, -24}}, float[3] var = {{4800, 4600, 4900}}> {{
  y = BatchNormalization(image, one, mu, mu, var)
}}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    os.environ["NPUMAKE_THREADS"] = str(given.threads)
    files = tuple(
        SourceFile(name, path, digest.of_file(Path(path)))
        for name, path in pattern_files(given.folder, "*.jpg")
    )
    steps: tuple[Transform, ...] = (
        {"short_side_resize": ShortSideResize(short_size=256)},
        {"center_crop": CenterCrop()},
    )
    how = {"image": Files(FileGlob("*.jpg"), transforms=steps)}
    graph = parse_text(NET)
    mark_images(graph, ["image"])

    def floor() -> None:
        for file in files:
            with Image.open(file.path) as opened:
                np.asarray(opened.convert("RGB"))
            file.read()

    with tempfile.TemporaryDirectory() as folder:

        def stage() -> None:
            found = samples(graph, {"image": Input(offset=128)}, how, {"data.image.files": files})
            found.save(Path(folder) / "samples.npz")

        ours, yardstick = paired(given.runs, [stage, floor])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'samples':<12} {ours:6.2f} s   {ours / yardstick:.1f} x the floor, {len(files)} files")
    print(f"{'floor':<12} {yardstick:6.2f} s   each file decoded once")
    print(f"{'peak memory':<12} {peak:6.0f} MiB")


if __name__ == "__main__":
    main()
