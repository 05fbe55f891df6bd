"""Decoders from model outputs to boxes, by `evaluation.postprocess`.

yolo   outputs described by the model's edgefirst metadata (npumake.detection.decode)
ssd    offsets to anchors, or decoded boxes (npumake.evaluate.ssd)
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
    """The decoder. Raises ProjectError for a postprocessing without boxes or with missing data."""
    how = setting.evaluation.postprocess
    if how not in FINDERS:
        hint = "write  postprocess: yolo  or  ssd"
        raise ProjectError("average precision needs boxes", POSTPROCESS, hint)
    return FINDERS[how](setting)


def _yolo(setting: Setting) -> Find:
    metadata = setting.metadata
    if metadata is None:
        hint = "set `model.metadata` to an edgefirst.json"
        raise ProjectError("there is no metadata to decode the outputs with", POSTPROCESS, hint)
    rules = rules_for_map(metadata)
    return lambda arrays: decode(arrays, metadata.outputs, setting.input_size, rules)


def _ssd(setting: Setting) -> Find:
    ssd = setting.evaluation.ssd
    anchors = None if ssd is None else anchors_of(ssd, setting.sources, setting.input_size)
    return lambda arrays: decode_ssd(arrays, ssd, anchors)


FINDERS: Mapping[str, Callable[[Setting], Find]] = {"yolo": _yolo, "ssd": _ssd}
