"""Mean average precision of artifacts on held-out scenes, and what each lost against the float one.

    python projects/shapes-detector/evaluate.py [ARTIFACT ...] [--scenes 300]

Without names: what `doit shapes-detector` left in out/. A `.hybrid` runs in exact integers, three
scenes a second; a quantized `.onnx` in onnxruntime, within a code of it. What an artifact says of a
scene is decoded as its own metadata describes it (npumake.detection).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scenes import CLASSES, SIZE, TEST, Scene, scenes

from npumake.detection.carriers import metadata_in
from npumake.detection.decode import decode, rules_for_map
from npumake.evaluate import AveragePrecision, ImageDetections, Truths, average_precision
from npumake.runtime import Session

HERE = Path(__file__).parent
OUT = HERE / "out"
ORIGINAL = OUT / "original_float.onnx"


def truths(painted: Scene) -> Truths:
    return Truths(painted.boxes, painted.labels, np.zeros(len(painted.labels), bool))


def fed(painted: Scene) -> NDArray[np.float32]:
    """What every artifact takes: pixel - 128, NCHW."""
    return painted.image.transpose(2, 0, 1)[None].astype(np.float32) - 128


def precision(artifact: Path, seeds: range) -> AveragePrecision:
    session, metadata = Session(artifact), metadata_in(artifact)
    assert metadata is not None, f"{artifact} carries no metadata"
    rules = rules_for_map(metadata)
    [image] = session.input_names
    said, true = [], []
    for painted in scenes(seeds):
        arrays = session.run(None, {image: fed(painted)})
        named = dict(zip(session.output_names, arrays, strict=True))
        found = decode(named, metadata.outputs, (SIZE, SIZE), rules)
        said.append(ImageDetections(found.boxes * SIZE, found.scores, found.classes))
        true.append(truths(painted))
    return average_precision(said, true, len(CLASSES))


def built() -> Iterator[Path]:
    yield ORIGINAL
    yield from sorted(OUT.rglob("quantized.*.onnx"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("artifacts", nargs="*", type=Path, metavar="ARTIFACT")
    parser.add_argument("--scenes", type=int, default=len(TEST), metavar="N")
    return parser.parse_args()


def main() -> None:
    if not ORIGINAL.exists():
        sys.exit("nothing to evaluate yet: type `doit shapes-detector` first")
    asked = arguments()
    seeds = TEST[: asked.scenes]
    artifacts = [path.resolve() for path in asked.artifacts] or list(built())
    names = [str(path.relative_to(OUT) if path.is_relative_to(OUT) else path) for path in artifacts]
    width = max(map(len, names))
    original = precision(ORIGINAL, seeds)
    print(f"{'artifact':{width}}   mAP50   mAP50:95   points lost")
    for name, artifact in zip(names, artifacts, strict=True):
        found = original if artifact == ORIGINAL else precision(artifact, seeds)
        lost = [original.map50 - found.map50, original.map50_95 - found.map50_95]
        figures = f"{100 * found.map50:5.1f}   {100 * found.map50_95:8.1f}"
        print(f"{name:{width}}   {figures}   {100 * lost[0]:.1f} / {100 * lost[1]:.1f}")


if __name__ == "__main__":
    main()
