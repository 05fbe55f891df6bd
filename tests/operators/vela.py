"""What Vela leaves to the CPU, by the names of what it makes there."""

from __future__ import annotations

import json

from pipeline.compilers.vela import ESTIMATE, with_vela
from pipeline.targets.target import Target


def on_the_cpu(model: bytes, target: Target) -> list[str]:
    """Raises StageError where Vela fails."""
    layers = json.loads(with_vela(model, target)[1][ESTIMATE])["layers"]
    return [str(layer["Name"]) for layer in layers if layer["Target"] != "NPU"]
