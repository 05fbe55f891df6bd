"""What finds the boxes in an answer, as `evaluation.postprocess` says.

yolo   as the model's edgefirst metadata describes its outputs (npumake.detection.decode)
ssd    by anchors, or decoded already (npumake.evaluate.ssd)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npumake.detection.decode import Detections, decode, rules_for_map
from npumake.errors import ProjectError, Route
from npumake.evaluate.setting import Arrays, Setting
from npumake.evaluate.ssd import anchors_of, decode_ssd

POSTPROCESS = Route("evaluation.postprocess")

Find = Callable[[Arrays], Detections]


def finder(setting: Setting) -> Find:
    """Raises ProjectError for a postprocessing without boxes, and for what it misses."""
    how = setting.evaluation.postprocess
    if how not in FINDERS:
        hint = "write  postprocess: yolo  or  ssd"
        raise ProjectError("an average precision is of boxes", POSTPROCESS, hint)
    return FINDERS[how](setting)


def _yolo(setting: Setting) -> Find:
    metadata = setting.metadata
    if metadata is None:
        hint = "`model.metadata` names an edgefirst.json that does"
        raise ProjectError("nothing says how the model's outputs are decoded", POSTPROCESS, hint)
    rules = rules_for_map(metadata)
    return lambda arrays: decode(arrays, metadata.outputs, setting.input_size, rules)


def _ssd(setting: Setting) -> Find:
    ssd = setting.evaluation.ssd
    anchors = None if ssd is None else anchors_of(ssd, setting.sources, setting.input_size)
    return lambda arrays: decode_ssd(arrays, ssd, anchors)


FINDERS: Mapping[str, Callable[[Setting], Find]] = {"yolo": _yolo, "ssd": _ssd}
