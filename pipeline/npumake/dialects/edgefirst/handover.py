"""Our words → the Ara2 Converter's form. It runs in EdgeFirst Studio: there is no command to call.

Its samples are one snapshot: the project's own, or one made of its samples where these are pixels.
Studio takes one of its own otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import numpy as np

from npumake.dialects.edgefirst.dialect import METHOD, SMART, UNSIGNED
from npumake.dialects.handover import Handed, HandoverRequest, Tool, unsaid
from npumake.digest import Json
from npumake.project.precision import Types

METADATA = "edgefirst.json"


def written(request: HandoverRequest) -> Handed:
    model, types = request.sections.model, request.sections.quantization.types
    compile = request.sections.compile
    rules = types if isinstance(types, tuple) else (types,)
    smart = any(one.get("BOXES") == "int16" for one in rules)
    own = [one.snapshot for one in request.sections.data.values() if one.snapshot]
    snapshot = own[0] if own else request.snapshot
    document: dict[str, Json] = {
        **(request.said or {}),
        "model": request.model,
        "int16_mode": SMART if smart else "int8",
        **({"calibration": PurePosixPath(snapshot).name} if snapshot else {}),
        **({"metadata": METADATA} if model.metadata else {}),
        **({"task": compile.task} if compile.task else {}),
    }
    scales = [
        f"inputs.{one.name}: Studio's models are fed 0..255 times 1/255"
        for one in request.inputs.values()
        if np.any(one.section.mean) or not np.allclose(one.section.scale, UNSIGNED, 1e-5, 0)
    ]
    missing = "data: no pixels of 0..255 that a snapshot could hold; Studio takes one of its own"
    samples = [] if snapshot else [missing]
    left_out = (*scales, *samples, *_decided_there(request, rules, smart))
    return Handed(document, (*left_out, *unsaid(request.sections.quantization, "types")))


def _decided_there(request: HandoverRequest, rules: Sequence[Types], smart: bool) -> Iterator[str]:
    """What the converter does by itself, where the project does otherwise."""
    method = request.sections.calibration.method
    if method != METHOD:
        yield f"calibration.method: {method}; the converter finds the ranges by itself"
    if smart and not any(one.get("MASKS") == "int16" for one in rules):
        yield f"quantization.types: {SMART} has mask coefficients in 16 bits too"


ARA2 = Tool(
    "the Ara2 Converter",
    "ara2",
    "form.yaml",
    (".onnx",),
    written,
    lambda _: (),
    "model.dvm",
    snapshot=True,
)
