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
            "A pattern of pictures or arrays; of a model with several inputs one by input, fed "
            "together in the order of their names. The folder is the label unless `labels` is; "
            "labels are of the first input's files."
        ),
    ]
    labels: Annotated[
        FilePath | None,
        Doc("A .csv with the columns file and label, a .json of the same, or COCO's instances."),
    ] = None
    label_column: Annotated[str, Doc("The column of a .csv that holds the labels.")] = "label"
    label_offset: Annotated[
        int,
        Doc("Added to labels that are numbers: 1 where the model's class 0 is background.", 0, 1),
    ] = 0
    classes: Annotated[
        tuple[str, ...],
        Doc("Labels in the order of the model's classes; by default numbers, or names sorted."),
    ] = ()
    transforms: Annotated[
        tuple[Transform, ...] | None,
        Doc("What is done to a picture before it is fed; by default what `data` says."),
    ] = None


@dataclass(frozen=True)
class Ssd:
    """How an SSD's raw outputs are decoded: offsets to anchors, and scores."""

    anchors: Annotated[
        FilePath | None,
        Doc(
            "A .npy (n, 4), centre and size in 0..1 of the input, or the .tflite model whose "
            "postprocessor has them; without it `sizes` and `strides`."
        ),
    ] = None
    sizes: Annotated[
        tuple[tuple[float, ...], ...], Doc("Sides of the square anchors, in pixels, per stride.", 0)
    ] = ()
    strides: Annotated[tuple[int, ...], Doc("Pixels per cell, in the order of the boxes.", 1)] = ()
    variances: Annotated[
        tuple[float, ...], Doc("[of places, of sizes], multiplied with the offsets.", 0)
    ] = (0.1, 0.2)
    order: Annotated[
        Literal["xywh", "yxhw"], Doc("Of the offsets and of a .npy; TensorFlow's is yxhw.")
    ] = "xywh"
    activation: Annotated[
        Literal["none", "sigmoid", "softmax"], Doc("What makes scores of the scores output.")
    ] = "none"


@dataclass(frozen=True)
class Evaluation:
    dataset: Annotated[Dataset, Doc("Pictures and what is true of them.")]
    metric: Annotated[
        Metric,
        Doc(
            "top1, top5, map50, map50_95, mask_map50, mask_map50_95, cosine, or "
            "`file.py:function`, Python of the project."
        ),
    ] = TOP1
    with_: Annotated[
        tuple[ModuleGlob, ...],
        Doc("Patterns of Python files in the project that the file of `metric` imports."),
    ] = ()
    postprocess: Annotated[
        Literal["none", "softmax", "yolo", "ssd"],
        Doc(
            "yolo: as the model's edgefirst metadata says; ssd: boxes and scores, the first class "
            "is background."
        ),
    ] = "none"
    ssd: Annotated[
        Ssd | None, Doc("Anchors, where the boxes are offsets; without it boxes are in 0..1.")
    ] = None
    artifacts: Annotated[
        tuple[Literal["float", "calibrated", "quantized", "compiled"], ...],
        Doc(
            "What is evaluated, the float model in any case; compiled runs in exact integers, the "
            "others in onnxruntime."
        ),
    ] = ("float", "quantized")
    limit: Annotated[
        int | None, Doc("So many pictures, spread evenly; by default all.", minimum=1)
    ] = None
    jobs: Annotated[int | None, Doc("Pictures at a time; by default one per core.", 1, 256)] = None


@dataclass(frozen=True)
class Gate:
    """One condition: `metric` with `max_drop`, `cosine`, `max_cpu_nodes` or `max_latency_ms`."""

    metric: Annotated[
        str | None, Doc("A figure of `evaluation`, in points; the last artifact counts.")
    ] = None
    max_drop: Annotated[float | None, Doc("At most so far below the float model.", minimum=0.0)] = (
        None
    )
    cosine: Annotated[
        float | None, Doc("Of the worst output, over the calibration samples.", 0.0, 1.0)
    ] = None
    max_cpu_nodes: Annotated[int | None, Doc("Nodes that may run on the CPU.", minimum=0)] = None
    max_latency_ms: Annotated[
        float | None, Doc("Of one frame, as `npumake perf` estimates it, or at least.", minimum=0.0)
    ] = None


@dataclass(frozen=True)
class Report:
    samples: Annotated[
        int, Doc("So many samples are shown with what float and integers make of them.", 0, 64)
    ] = 4
