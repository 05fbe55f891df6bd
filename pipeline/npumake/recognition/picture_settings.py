"""Inputs beside a picture that say how it was resized.

A project feeds every picture in one size, so these never change: the project freezes them, and the
boxes are those of the fed picture.
"""

from __future__ import annotations


def picture_setting(name: str, length: int, size: tuple[int, int]) -> tuple[int, ...] | None:
    """The constant for the input `name` of `length` elements, or None for any other input.

    `size` is the height and width of the fed picture.
    """
    height, width = size
    settings = {
        "im_shape": (height, width),  # PaddleDetection
        "scale_factor": (1, 1),  # PaddleDetection: the fed size over the original one
        "orig_target_sizes": (width, height),  # RT-DETR and D-FINE
        "image_shape": (height, width),  # YOLOv3 and Tiny YOLOv3 of the ONNX model zoo
        "im_info": (height, width, 1),  # Faster R-CNN of Caffe
    }
    values = settings.get(name, ())
    return values if len(values) == length else None
