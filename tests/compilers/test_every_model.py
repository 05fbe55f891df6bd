"""Every model of shared/data goes through the checker and becomes a file of every compiler."""

from __future__ import annotations

import pytest
from compilers.files import MODELS, made
from frontends.test_every_real_model import graphs

from pipeline.compilers.backends import BACKENDS
from pipeline.compilers.process import require
from pipeline.debug.placed import placed
from pipeline.errors import GraphError, StageError
from pipeline.targets.reader import read_target, target_names

FILES = sorted(
    str(file.relative_to(MODELS))
    for suffix in (".onnx", ".prototxt", ".tflite")
    for file in MODELS.rglob(f"*{suffix}")
)
