"""The sections `evaluation:`, `gates:` and `report:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from npumake.project.doc import Doc
from npumake.project.paths import FileGlob, FilePath, Metric, ModuleGlob
from npumake.project.transforms import Transform

TOP1 = Metric("top1")


@dataclass(frozen=True)
class Dataset:
    files: Annotated[
        FileGlob | Mapping[str, FileGlob],
        Doc(
            "Pattern of images or arrays; for several inputs one pattern per input, whose "
            "files are paired in order of their names. The folder name is the label, unless "
            "`labels` is set; labels belong to the files of the first input."
        ),
    ]
    labels: Annotated[
        FilePath | None,
        Doc(
            "A .csv with the columns file and label, a .json with the same keys, or COCO instances."
        ),
    ] = None
    label_column: Annotated[str, Doc("Column of the labels in a .csv.")] = "label"
    label_offset: Annotated[
        int,
        Doc("Added to numeric labels: 1 if the model's class 0 is background.", 0, 1),
    ] = 0
    classes: Annotated[
        tuple[str, ...],
        Doc("Labels in the order of the model's classes. Default: numeric order, or sorted names."),
    ] = ()
    transforms: Annotated[
        tuple[Transform, ...] | None,
        Doc("Transforms of an image. Default: those of `data`."),
    ] = None


@dataclass(frozen=True)
class Ssd:
    """How an SSD's raw outputs are decoded: offsets to anchors, and scores."""

    anchors: Annotated[
        FilePath | None,
        Doc(
            "A .npy of shape (n, 4) with center and size in 0..1 of the input, or a .tflite "
            "model with the anchors in its postprocessor. Default: from `sizes` and "
            "`strides`."
        ),
    ] = None
    sizes: Annotated[
        tuple[tuple[float, ...], ...],
        Doc("Side lengths of the square anchors in pixels, per stride.", 0),
    ] = ()
    strides: Annotated[tuple[int, ...], Doc("Pixels per cell, in the order of the boxes.", 1)] = ()
    variances: Annotated[tuple[float, ...], Doc("[center, size]: factors of the offsets.", 0)] = (
        0.1,
        0.2,
    )
    order: Annotated[
        Literal["xywh", "yxhw"],
        Doc("Coordinate order of the offsets and of a .npy; TensorFlow uses yxhw."),
    ] = "xywh"
    activation: Annotated[
        Literal["none", "sigmoid", "softmax"],
        Doc("Activation that turns the scores output into scores."),
    ] = "none"


@dataclass(frozen=True)
class Evaluation:
    dataset: Annotated[Dataset, Doc("Images with their ground truth.")]
    metric: Annotated[
        Metric,
        Doc(
            "top1, top5, map50, map50_95, mask_map50, mask_map50_95, cosine, or a Python "
            "function of the project as `file.py:function`."
        ),
    ] = TOP1
    with_: Annotated[
        tuple[ModuleGlob, ...],
        Doc("Patterns of Python files in the project that the file of `metric` imports."),
    ] = ()
    postprocess: Annotated[
        Literal["none", "softmax", "yolo", "ssd"],
        Doc(
            "yolo: as in the model's edgefirst metadata; ssd: boxes and scores, where the "
            "first class is background."
        ),
    ] = "none"
    ssd: Annotated[
        Ssd | None, Doc("Anchors, if boxes are offsets. Default: boxes are in 0..1.")
    ] = None
    artifacts: Annotated[
        tuple[Literal["float", "calibrated", "quantized", "compiled"], ...],
        Doc(
            "Artifacts to evaluate besides the float model. `compiled` runs in exact "
            "integers, all others in onnxruntime."
        ),
    ] = ("float", "quantized")
    limit: Annotated[
        int | None, Doc("Number of images, evenly spaced. Default: all.", minimum=1)
    ] = None
    jobs: Annotated[
        int | None, Doc("Images evaluated in parallel. Default: one per core.", 1, 256)
    ] = None


@dataclass(frozen=True)
class Gate:
    """One condition: `metric` with `max_drop`, `cosine`, `max_cpu_nodes` or `max_latency_ms`."""

    metric: Annotated[
        str | None, Doc("A metric of `evaluation`, in points, of the last artifact.")
    ] = None
    max_drop: Annotated[
        float | None, Doc("Maximum drop below the float model, in points.", minimum=0.0)
    ] = None
    cosine: Annotated[
        float | None,
        Doc("Minimum cosine of the worst output, over the calibration samples.", 0.0, 1.0),
    ] = None
    max_cpu_nodes: Annotated[int | None, Doc("Maximum number of nodes on the CPU.", minimum=0)] = (
        None
    )
    max_latency_ms: Annotated[
        float | None,
        Doc(
            "Maximum latency of a frame by `npumake perf`: its estimate, or its lower bound.",
            minimum=0.0,
        ),
    ] = None


@dataclass(frozen=True)
class Report:
    samples: Annotated[
        int, Doc("Number of samples to show with their float and integer outputs.", 0, 64)
    ] = 4
