"""Converts EdgeFirst's metadata from schema v1 to v2.

quantization [s, z] → {scale, zero_point} · dshape {a: 1, b: 2} → [{a: 1}, {b: 2}]
input.size "WxH" → input.shape [1, C, H, W] · boxes are `direct`, scores `per_class`
"""

from __future__ import annotations

import re
from typing import Any

from npumake.detection.entry import TEXT, MetadataEntry
from npumake.digest import Json
from npumake.errors import ProjectError

# (section, name there) → name today
_RENAMED = {
    ("model", "model_task"): "task",
    ("model", "model_size"): "size",
    ("input", "color_adaptor"): "cameraadaptor",
    ("validation", "validation_iou"): "iou",
    ("validation", "validation_threshold"): "score",
}
_CHANNELS = {"grey": 1, "yuyv": 2, "rgba": 4, "bgra": 4}  # by camera format; else three
_DEFAULTS = {"boxes": ("encoding", "direct"), "scores": ("score_format", "per_class")}


def as_v2(document: dict[str, Json], name: str) -> dict[str, Json]:
    """The document in schema v2. Raises ProjectError for an invalid size or grid."""
    result: dict[str, Any] = {**document, "schema_version": 2}
    for (section, old), new in _RENAMED.items():
        group = result.get(section)
        if isinstance(group, dict) and old in group and new not in group:
            result[section] = {(new if key == old else key): v for key, v in group.items()}
    top = MetadataEntry(result, name)
    size = top.entry("input").get("size", TEXT)
    if size is not None and "shape" not in result["input"]:
        result["input"] = result["input"] | {"shape": _shape(top.entry("input"), size)}
    if "nms" not in result:
        result["nms"] = "class_agnostic"
    if outputs := top.entries("outputs"):
        result["outputs"] = [_output(entry) for entry in outputs]
    return result


def _shape(entry: MetadataEntry, size: str) -> list[int]:
    if not (match := re.fullmatch(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})", size)):
        raise ProjectError(f"`{size}` is not WIDTHxHEIGHT", entry.below("size"), "such as 640x480")
    channels = _CHANNELS.get(str(entry.data.get("cameraadaptor")), 3)
    return [1, channels, int(match[2]), int(match[1])]


def _output(entry: MetadataEntry) -> dict[str, Json]:
    result: dict[str, Json] = dict(entry.data)
    grid = result.get("quantization")
    if isinstance(grid, list):
        if len(grid) != 2:
            hint = "such as [0.1, 0]"
            raise ProjectError("a grid is [scale, zero_point]", entry.below("quantization"), hint)
        result["quantization"] = {"scale": grid[0], "zero_point": grid[1]}
    if isinstance(result.get("dshape"), dict):
        result["dshape"] = [{name: size} for name, size in result["dshape"].items()]
    if (default := _DEFAULTS.get(str(result.get("type")))) and default[0] not in result:
        result[default[0]] = default[1]
    return result
