"""GraphDef → ONNX, by tf2onnx in a process of its own.

TensorFlow takes seconds to load and answers some files by ending the process; here that is an
error like any other. The version of the converter is in the key (npumake.make.code.CONVERTERS).
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

OPSET = 13  # well trodden by tf2onnx; `original_float` upgrades it
GIVEN, MADE = "model.pb", "model.onnx"
PATIENCE = 900  # seconds
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0"}


def converted(graph: GraphDef, name: str) -> bytes:
    """The bytes of the ONNX model. Raises GraphError without a converter, or where it refuses."""
    if not (find_spec("tf2onnx") and find_spec("tensorflow")):
        raise GraphError(
            "reading TensorFlow needs its converter, which is not installed",
            name,
            f"{install_line('tf2onnx')}  (1.6 GB), or export the model to ONNX",
        )
    with temporary_folder() as folder:
        given, made = folder / GIVEN, folder / MADE
        given.write_bytes(graph.data)
        try:
            run = run_supervised(
                # Not the project's directory, and nothing from it: -P keeps it off the path.
                [sys.executable, "-P", "-m", "tf2onnx.convert", *_arguments(graph)],
                PATIENCE,
                folder,
                {**os.environ, **QUIET, "TMPDIR": str(folder)},
            )
        except subprocess.TimeoutExpired as error:
            raise GraphError(f"tf2onnx did not end in {PATIENCE} s", name) from error
        if run.returncode or not made.is_file():
            raise GraphError(f"tf2onnx cannot convert the model: {_reason(run.stderr)}", name)
        return made.read_bytes()


def _arguments(graph: GraphDef) -> list[str]:
    """The files by their bare names: the converter writes into the model where it came from."""

    def tensors(names: tuple[str, ...]) -> str:
        return ",".join(f"{node}:0" for node in names)

    options = {
        "--graphdef": GIVEN,
        "--output": MADE,
        "--opset": str(OPSET),
        "--inputs": tensors(graph.inputs),
        "--outputs": tensors(graph.outputs),
        "--rename-inputs": ",".join(graph.inputs),
        "--rename-outputs": ",".join(graph.outputs),
    }
    return [f"{option}={value}" for option, value in options.items()]


def _reason(said: bytes) -> str:
    """The last line that names an error, else the last line."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["it ended without a word"])[-1][:300]
