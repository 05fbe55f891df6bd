"""Quantizes with NNCF, in a Python of its own that has nncf and onnx."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npumake.engine.ort import Feeds

SCRIPT = """
import sys, numpy, onnx, nncf
source, made, samples, preset, correction = sys.argv[1:]
arrays = numpy.load(samples)
count = len(arrays[arrays.files[0]])
data = nncf.Dataset([{name: arrays[name][i] for name in arrays} for i in range(count)])
preset = nncf.QuantizationPreset(preset)
model = nncf.quantize(
    onnx.load(source),
    data,
    preset=preset,
    subset_size=count,
    fast_bias_correction=correction == "fast",
)
onnx.save(model, made)
"""


CORRECTIONS = {"nncf": "fast", "nncf, full bias correction": "full"}  # the first is its default


def quantized_by_nncf(
    python: str, model: bytes, feeds: Sequence[Feeds], symmetric: bool, correction: str = "fast"
) -> bytes:
    """The model as nncf.quantize makes it of these samples, all of one shape.

    Raises RuntimeError with the last line of what it says where it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, made, kept = (Path(folder) / name for name in ("a.onnx", "b.onnx", "s.npz"))
        source.write_bytes(model)
        stacked: Any = {name: np.stack([feed[name] for feed in feeds]) for name in feeds[0]}
        np.savez(kept, **stacked)
        preset = "performance" if symmetric else "mixed"
        command = [python, "-c", SCRIPT, str(source), str(made), str(kept), preset, correction]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"nncf: {ran.stderr.strip().splitlines()[-1:]}")
        return made.read_bytes()
