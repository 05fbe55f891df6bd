"""How good a model is at its task, whatever ran it: what it said against what is true.

It refuses to know artifacts, targets and gates: arrays in, figures out.
"""

from npumake.evaluate.average_precision import (
    AveragePrecision,
    ImageDetections,
    Truths,
    average_precision,
    box_iou,
)

__all__ = ["AveragePrecision", "ImageDetections", "Truths", "average_precision", "box_iou"]
