"""The native document → the Ara2 Converter's form.

The converter runs in EdgeFirst Studio, so there is no command to call. Its samples are one
snapshot: the project's own, or one from its samples if these are pixels. Without one, Studio uses
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import numpy as np

from npumake.dialects.edgefirst.dialect import METHOD, SMART, UNSIGNED
from npumake.dialects.handover import ClosedTool, HandoverDocument, HandoverRequest, omitted_keys
from npumake.digest import Json
from npumake.project.precision import Types

METADATA = "edgefirst.json"


def render(request: HandoverRequest) -> HandoverDocument:
    model, types = request.sections.model, request.sections.quantization.types
    compile = request.sections.compile
    rules = types if isinstance(types, tuple) else (types,)
    smart = any(entry.get("BOXES") == "int16" for entry in rules)
    own = [entry.snapshot for entry in request.sections.data.values() if entry.snapshot]
    snapshot = own[0] if own else request.snapshot
    document: dict[str, Json] = {
        **(request.vendor_document or {}),
        "model": request.model,
        "int16_mode": SMART if smart else "int8",
        **({"calibration": PurePosixPath(snapshot).name} if snapshot else {}),
        **({"metadata": METADATA} if model.metadata else {}),
        **({"task": compile.task} if compile.task else {}),
    }
    scales = [
        f"inputs.{entry.name}: Studio's models are fed 0..255 times 1/255"
        for entry in request.inputs.values()
        if np.any(entry.section.mean) or not np.allclose(entry.section.scale, UNSIGNED, 1e-5, 0)
    ]
    missing = "data: no pixels of 0..255 that a snapshot could hold; Studio takes one of its own"
    samples = [] if snapshot else [missing]
    omissions = (*scales, *samples, *_decided_there(request, rules, smart))
    return HandoverDocument(
        document, (*omissions, *omitted_keys(request.sections.quantization, "types"))
    )


def _decided_there(request: HandoverRequest, rules: Sequence[Types], smart: bool) -> Iterator[str]:
    """The settings that the converter decides by itself, and differently from the project."""
    method = request.sections.calibration.method
    if method != METHOD:
        yield f"calibration.method: {method}; the converter finds the ranges by itself"
    if smart and not any(rule.get("MASKS") == "int16" for rule in rules):
        yield f"quantization.types: {SMART} has mask coefficients in 16 bits too"


ARA2 = ClosedTool(
    "the Ara2 Converter",
    "ara2",
    "form.yaml",
    (".onnx",),
    render,
    lambda _: (),
    "model.dvm",
    snapshot=True,
)
