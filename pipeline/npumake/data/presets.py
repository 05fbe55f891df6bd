"""How the pictures of D-Robotics' public classifiers are prepared, by the name of the model.

Its tool knows detectors and segmenters, too; what it does for these is not documented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npumake.data.transforms import transformed
from npumake.errors import ProjectError, did_you_mean
from npumake.project.transforms import (
    CenterCrop,
    PaddedCenterCrop,
    Resize,
    ShortSideResize,
    Transform,
)

SIDE = 224
LITE = (224, 240, 260, 280, 300)  # of EfficientNet-lite 0 to 4


def _lite(side: int) -> Sequence[Transform]:
    return (
        {"padded_center_crop": PaddedCenterCrop(image_size=side, crop_pad=32)},
        {"resize": Resize(target_size=side, mode="opencv", interpolation="INTER_CUBIC")},
    )


_CLASSIFIER: Sequence[Transform] = (
    {"short_side_resize": ShortSideResize(short_size=256)},
    {"center_crop": CenterCrop(crop_size=SIDE)},
)
PRESETS: Mapping[str, Sequence[Transform]] = {
    **dict.fromkeys(("mobilenetv1", "mobilenetv2", "resnet18", "resnet50"), _CLASSIFIER),
    **dict.fromkeys(("googlenet", "vargconvnet"), _CLASSIFIER),
    **{f"efficientnet_lite{n}": _lite(side) for n, side in enumerate(LITE)},
}


def preset(rgb: np.ndarray, model: str, file: str) -> np.ndarray:
    """(H, W, 3), uint8, as the model of that name sees it, uint8. Raises ProjectError."""
    if model not in PRESETS:
        raise ProjectError(f"nothing is known of `{model}`", "-m", did_you_mean(model, PRESETS))
    image = transformed(rgb, PRESETS[model], (SIDE, SIDE), "transforms", file)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)
