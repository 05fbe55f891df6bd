"""Top-1 of artifacts on the 600 held-out digits, and what each lost against the float model.

    python projects/digits/evaluate.py [ARTIFACT ...]     (default: what `doit` left in out/)

Every artifact, float, quantized or compiled, takes what the stage `samples` feeds: `pixel - 128`
as float32, one image at a time. The rest of the preprocessing is inside it. `Session` runs any:

    session = Session("out/quantized.imx93.onnx")
    [logits] = session.run(["logits"], {"image": image})
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from npumake.runtime import Session

HERE = Path(__file__).parent
OUT = HERE / "out"
ORIGINAL = OUT / "original_float.onnx"


def top1(artifact: Path) -> float:
    """Percent of the held-out images whose largest logit is their label's."""
    session = Session(artifact)
    [image] = session.input_names
    pixels = np.load(HERE / "test_images.npy").astype(np.float32) - 128  # (N, 1, 8, 8)
    labels = np.load(HERE / "test_labels.npy")  # (N,)
    logits = [session.run(None, {image: pixel[None]})[0] for pixel in pixels]
    return 100 * float(np.mean(np.argmax(logits, axis=-1).ravel() == labels))


def main() -> None:
    if not ORIGINAL.exists():
        sys.exit("nothing to evaluate yet: type `doit` first")
    found = [*sorted(OUT.glob("quantized.*.onnx")), *sorted(OUT.glob("*.hybrid"))]
    artifacts = [Path(argument) for argument in sys.argv[1:]] or [ORIGINAL, *found]
    width = max(len(artifact.name) for artifact in artifacts)
    original = top1(ORIGINAL)
    print(f"{'artifact':{width}}   top-1 %   points lost")
    for artifact in artifacts:
        percent = top1(artifact)
        print(f"{artifact.name:{width}}   {percent:7.2f}   {original - percent:11.2f}")


if __name__ == "__main__":
    main()
