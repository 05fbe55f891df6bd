"""--fast-perf of hb_mapper and hb_compile: a project for timing only, calibrated on noise.

    unit     the BPU wherever possible
    border   removes Quantize, Transpose, Dequantize, Cast, Reshape and Softmax until none remains
    input    three channels with even sides: a bgr image, fed as nv12; all others: feature maps

Source: the OpenExplorer tables of hb_compile.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from npumake.cli.model_file import held_files
from npumake.cli.vendors.project import model_files, shapes, target_of
from npumake.digest import Json

NOISE_SAMPLES = 8  # enough to time a model
BORDER = ("Quantize", "Transpose", "Dequantize", "Cast", "Reshape", "Softmax")
PICTURE = {"type": "bgr", "fed_type": "nv12"}


def fast_project(
    arguments: argparse.Namespace, folder: Path, marches: Mapping[str, str], level: str
) -> Json:
    """The project in `folder`. Raises PipelineError."""
    files = model_files(arguments.model, arguments.proto, folder)
    target = target_of(arguments.march, marches)
    cores = getattr(arguments, "core_num", None) or 1
    return {
        "model": files,
        "inputs": _inputs(arguments),
        "data": {"*": {"random": NOISE_SAMPLES}},
        "calibration": {"method": "max"},
        "quantization": {"npu": ["*"]},
        "compile": {
            "prefix": Path(arguments.model).stem,
            "optimize_level": level,
            **({"core_num": cores} if cores > 1 else {}),
            "remove_types": list(BORDER),
        },
        "targets": [target],
    }


def _inputs(arguments: argparse.Namespace) -> dict[str, Json]:
    """`inputs:` with the shapes of the command line and the type of images. Raises
    PipelineError."""
    from npumake.frontends import RESHAPED, read_model, suffix_of

    shaped = shapes(arguments.input_shape)
    fixed = {name: tuple(entry["shape"]) for name, entry in shaped.items()}
    caffe = None if arguments.proto is None else Path(arguments.model)
    model_source = held_files(Path(arguments.proto or arguments.model), caffe)
    other = fixed if suffix_of(model_source.model.name) in RESHAPED else {}
    graph = read_model(
        model_source.model.read(), model_source.model.name, model_source.weights, other
    )
    inputs = dict(shaped)
    for value in graph.inputs:
        name = str(value.name)
        sizes = fixed.get(name, tuple(value.shape or ()))
        if layout := picture_layout(sizes):
            inputs[name] = {**shaped.get(name, {}), **PICTURE, "layout": layout}
    return inputs


def picture_layout(sizes: Sequence[object]) -> str:
    """The layout of an image with three channels and even sides; empty for any other shape."""
    if len(sizes) != 4:
        return ""
    for layout, sides in (("NCHW", sizes[2:]), ("NHWC", sizes[1:3])):
        even = all(isinstance(side, int) and side % 2 == 0 for side in sides)
        if sizes[layout.index("C")] == 3 and even:
            return layout
    return ""
