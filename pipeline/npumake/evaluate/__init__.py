"""Evaluates a model at its task: outputs against ground truth, independent of the engine.

Arrays in, figures out. The metrics know nothing of artifacts, targets or gates.
"""

from npumake.evaluate.average_precision import (
    AveragePrecision,
    ImageDetections,
    Truths,
    average_precision,
    box_iou,
)

__all__ = ["AveragePrecision", "ImageDetections", "Truths", "average_precision", "box_iou"]
