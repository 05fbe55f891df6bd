"""Our words → the Ara2 Converter's form. It runs in EdgeFirst Studio: there is no command to call.

Its samples are one snapshot: the project's own, or one made of its samples where these are pixels.
Studio takes one of its own otherwise.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np

from pipeline.digest import Json
from pipeline.project.sections import Calibration
from pipeline.targets.edgefirst.dialect import SMART, UNSIGNED
from pipeline.targets.handover import Asked, Handed, Tool, unsaid

METADATA = "edgefirst.json"


def written(asked: Asked) -> Handed:
    model, said = asked.sections.model, asked.sections.quantization.types
    rules = said if isinstance(said, tuple) else (said,)
    smart = any(one.get("BOXES") == "int16" for one in rules)
    own = [one.snapshot for one in asked.sections.data.values() if one.snapshot]
    snapshot = own[0] if own else asked.snapshot
    document: dict[str, Json] = {
        **(asked.said or {}),
        "model": asked.model,
        "int16_mode": SMART if smart else "int8",
        **({"calibration": PurePosixPath(snapshot).name} if snapshot else {}),
        **({"metadata": METADATA} if model.metadata else {}),
    }
    scales = [
        f"inputs.{one.name}: Studio's models are fed 0..255 times 1/255"
        for one in asked.inputs.values()
        if np.any(one.said.mean) or not np.allclose(one.said.scale, UNSIGNED, 1e-5, 0)
    ]
    missing = "data: no pixels of 0..255 that a snapshot could hold; Studio takes one of its own"
    samples = [] if snapshot else [missing]
    calibration = asked.sections.calibration
    method = []
    if asked.said is None and calibration != Calibration():
        method.append(
            f"calibration: {calibration.method}; Studio calibrates by a method of its own"
        )
    types = unsaid(asked.sections.quantization, "types")
    return Handed(document, (*scales, *samples, *method, *types))


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
