"""The preprocessing of D-Robotics' public classifiers, by model name.

The vendor's tool also covers detectors and segmenters, but without documentation.
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
LITE = (224, 240, 260, 280, 300)  # input sides of EfficientNet-lite 0 to 4


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
    """`rgb` (H, W, 3), uint8, preprocessed for the model. Raises ProjectError."""
    if model not in PRESETS:
        raise ProjectError(f"no preset for `{model}`", "-m", did_you_mean(model, PRESETS))
    image = transformed(rgb, PRESETS[model], (SIDE, SIDE), "transforms", file)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)
