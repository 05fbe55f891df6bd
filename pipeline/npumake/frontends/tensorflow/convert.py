"""GraphDef → ONNX, by tf2onnx in a separate process.

TensorFlow takes seconds to load and aborts on some files; here an abort is an ordinary error. The
converter's version is part of the cache key (npumake.make.code.CONVERTERS).
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

from npumake.errors import GraphError
from npumake.extras import install_line
from npumake.frontends.tensorflow.graphdef import GraphDef
from npumake.lifetime.parent import run_supervised
from npumake.lifetime.temporaries import temporary_folder

OPSET = 13  # well tested in tf2onnx; `original_float` upgrades it
GRAPHDEF_FILE, ONNX_FILE = "model.pb", "model.onnx"
MAX_SECONDS = 900  # seconds
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}


def converted(graph: GraphDef, name: str) -> bytes:
    """The ONNX model. Raises GraphError without a converter, or if it fails."""
    if not (find_spec("tf2onnx") and find_spec("tensorflow")):
        raise GraphError(
            "reading TensorFlow needs its converter, which is not installed",
            name,
            f"{install_line('tf2onnx')}  (1.6 GB), or export the model to ONNX",
        )
    with temporary_folder() as folder:
        source, product = folder / GRAPHDEF_FILE, folder / ONNX_FILE
        source.write_bytes(graph.data)
        try:
            run = run_supervised(
                # -P keeps the project's directory off the module path.
                [sys.executable, "-P", "-m", "tf2onnx.convert", *_arguments(graph)],
                MAX_SECONDS,
                folder,
                {**os.environ, **QUIET, "TMPDIR": str(folder)},
            )
        except subprocess.TimeoutExpired as error:
            raise GraphError(f"tf2onnx did not end in {MAX_SECONDS} s", name) from error
        if run.returncode or not product.is_file():
            raise GraphError(f"tf2onnx cannot convert the model: {_reason(run.stderr)}", name)
        return product.read_bytes()


def _arguments(graph: GraphDef) -> list[str]:
    """Bare file names: the converter stores its input path in the model."""

    def tensors(names: tuple[str, ...]) -> str:
        return ",".join(f"{node}:0" for node in names)

    options = {
        "--graphdef": GRAPHDEF_FILE,
        "--output": ONNX_FILE,
        "--opset": str(OPSET),
        "--inputs": tensors(graph.inputs),
        "--outputs": tensors(graph.outputs),
        "--rename-inputs": ",".join(graph.inputs),
        "--rename-outputs": ",".join(graph.outputs),
    }
    return [f"{option}={value}" for option, value in options.items()]


def _reason(stderr: bytes) -> str:
    """The last line that names an error, else the last line."""
    lines = [
        line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()
    ]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["it ended without a message"])[-1][:300]
