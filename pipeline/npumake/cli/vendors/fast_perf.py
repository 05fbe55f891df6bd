"""--fast-perf of hb_mapper and hb_compile: a project for speed alone, calibrated on noise.

    unit     the BPU wherever it can
    border   Quantize, Transpose, Dequantize, Cast, Reshape, Softmax: gone, until none is left
    input    three channels of even sides are a bgr picture fed as nv12; all else is a feature map

Source: the OpenExplorer tables of hb_compile.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from npumake.cli.model_file import held_files
from npumake.cli.vendors.project import model_files, shapes, target_of
from npumake.digest import Json

RANDOM = 8  # samples of noise where only speed is asked for
BORDER = ("Quantize", "Transpose", "Dequantize", "Cast", "Reshape", "Softmax")
PICTURE = {"type": "bgr", "fed_type": "nv12"}


def fast_project(
    given: argparse.Namespace, folder: Path, marches: Mapping[str, str], level: str
) -> Json:
    """The project in `folder`. Raises PipelineError."""
    files = model_files(given.model, given.proto, folder)
    target = target_of(given.march, marches)
    cores = getattr(given, "core_num", None) or 1
    return {
        "model": files,
        "inputs": _inputs(given),
        "data": {"*": {"random": RANDOM}},
        "calibration": {"method": "max"},
        "quantization": {"npu": ["*"]},
        "compile": {
            "prefix": Path(given.model).stem,
            "optimize_level": level,
            **({"core_num": cores} if cores > 1 else {}),
            "remove_types": list(BORDER),
        },
        "targets": [target],
    }


def _inputs(given: argparse.Namespace) -> dict[str, Json]:
    """What is said of the inputs, and of those that are pictures. Raises PipelineError."""
    from npumake.frontends import RESHAPED, read_model, suffix_of

    said = shapes(given.input_shape)
    fixed = {name: tuple(one["shape"]) for name, one in said.items()}
    caffe = None if given.proto is None else Path(given.model)
    held = held_files(Path(given.proto or given.model), caffe)
    other = fixed if suffix_of(held.model.name) in RESHAPED else {}
    graph = read_model(held.model.read(), held.model.name, held.weights, other)
    found = dict(said)
    for value in graph.inputs:
        name = str(value.name)
        sizes = fixed.get(name, tuple(value.shape or ()))
        if layout := picture_layout(sizes):
            found[name] = {**said.get(name, {}), **PICTURE, "layout": layout}
    return found


def picture_layout(sizes: Sequence[object]) -> str:
    """Where a picture has its three channels; empty for what is none, or has odd sides."""
    if len(sizes) != 4:
        return ""
    for layout, sides in (("NCHW", sizes[2:]), ("NHWC", sizes[1:3])):
        even = all(isinstance(side, int) and side % 2 == 0 for side in sides)
        if sizes[layout.index("C")] == 3 and even:
            return layout
    return ""
