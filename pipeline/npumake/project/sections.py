"""The sections of a project: YAML keys, their types and their defaults.

Each key and its default is defined here only. `schema.py` converts these dataclasses to JSON
Schema, and `reader.py` builds them from YAML. A stage names its section as a parameter. Editors
show the text of Doc as help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NewType, TypeAlias

from npumake.project.compiling import BoardCost as BoardCost
from npumake.project.compiling import ComparisonSettings as ComparisonSettings
from npumake.project.compiling import Compile as Compile
from npumake.project.doc import Doc as Doc
from npumake.project.evaluation import Dataset as Dataset
from npumake.project.evaluation import Evaluation as Evaluation
from npumake.project.evaluation import Gate as Gate
from npumake.project.evaluation import Report as Report
from npumake.project.evaluation import Ssd as Ssd
from npumake.project.paths import CodeGlob as CodeGlob
from npumake.project.paths import FileGlob as FileGlob
from npumake.project.paths import FilePath as FilePath
from npumake.project.paths import ModuleGlob as ModuleGlob
from npumake.project.precision import Calibration as Calibration
from npumake.project.precision import LayerTypes as LayerTypes
from npumake.project.precision import Method as Method
from npumake.project.precision import Modelwise as Modelwise
from npumake.project.precision import Quantization as Quantization
from npumake.project.security import Security as Security
from npumake.project.transforms import Transform

Overlay = NewType("Overlay", dict[str, Any])  # keys of the project that override the file's
TargetOverlay = NewType("TargetOverlay", dict[str, Any])  # the one target it is for: an Overlay


FINDING = Literal[  # about samples
    "few", "blank", "duplicate", "range", "preprocessing", "wild", "constant", "padding"
]
Order = Literal["rgb", "bgr", "gray", "auto"]  # of the channels of an image that is read
PerChannel = float | tuple[float, ...]  # one number for all channels, or one per channel


@dataclass(frozen=True)
class ModelSection:
    path: Annotated[FilePath, Doc("The trained model: .onnx, .tflite, .pb or .prototxt.")]
    split: Annotated[
        Literal["none", "hints"],
        Doc("hints: cuts a detector's outputs at the `split_hints` of its metadata."),
    ] = "none"
    metadata: Annotated[
        FilePath | None,
        Doc("Path of edgefirst.json; an ONNX model may contain it."),
    ] = None
    weights: Annotated[
        FileGlob | None,
        Doc("Separate weight files: the .caffemodel, or the external data of an .onnx."),
    ] = None
    inputs: Annotated[
        tuple[str, ...],
        Doc("Tensors at which the model starts; nodes that only lead to them are dropped."),
    ] = ()
    output_count: Annotated[
        int | None,
        Doc("Number of outputs that other keys describe; a model with fewer is refused.", 1),
    ] = None
    outputs: Annotated[
        tuple[str, ...],
        Doc("Nodes or tensors at which the model ends; later nodes are dropped."),
    ] = ()
    remove_types: Annotated[
        tuple[Literal["Quantize", "Dequantize", "Transpose", "Cast", "Reshape", "Softmax"], ...],
        Doc("Operators to remove from the inputs and outputs of the model, type by type."),
    ] = ()
    remove_nodes: Annotated[
        tuple[str, ...],
        Doc("Nodes to remove from the inputs and outputs, in order, after `remove_types`."),
    ] = ()


@dataclass(frozen=True)
class CameraPreprocess:
    """A camera's picture in NHWC planes, one graph input per plane."""

    type: Annotated[
        Literal[
            "yuv444",
            "yuv420",
            "nv12",
            "nv21",
            "gray",
            "rgb",
            "bgra",
            "rgb888p",
            "rgb888p3",
            "float32",
        ],
        Doc("Format of the camera image; `float32` data passes unchanged."),
    ]
    size: Annotated[
        tuple[int, ...] | None,
        Doc("[height, width] of the image, if it differs from the model's.", 1, 8192),
    ] = None
    crop: Annotated[
        bool, Doc("Adds four inputs that select a rectangle: width, height, left, top.")
    ] = False


@dataclass(frozen=True)
class Input:
    """The trained form of one model input and the form it is fed at run time.

    The model gets (color(x + offset) - mean) * scale.
    """

    shape: Annotated[
        tuple[int, ...] | None, Doc("Required if the model leaves a dimension open.", minimum=1)
    ] = None
    batch: Annotated[
        int,
        Doc("Images per run of the compiled file; the model itself takes one.", 1, 128),
    ] = 1
    layout: Annotated[Literal["NCHW", "NHWC"], Doc("Layout in training.")] = "NCHW"
    fed_layout: Annotated[
        Literal["NCHW", "NHWC"] | None, Doc("Layout at runtime. Default: `layout`.")
    ] = None
    type: Annotated[
        Literal["rgb", "bgr", "gray", "yuv444", "featuremap"] | None,
        Doc("Color format in training. Default: `featuremap`, or `rgb` with `preprocess`."),
    ] = None
    fed_type: Annotated[
        Literal["rgb", "bgr", "gray", "yuv444", "nv12", "featuremap"] | None,
        Doc("Color format at runtime. Default: `type`. nv12 reaches the model as yuv444."),
    ] = None
    color_range: Annotated[
        Literal["full", "video"],
        Doc("Range of a YUV image: full, 0..255, or BT.601 video, 16..235."),
    ] = "full"
    preprocess: Annotated[
        CameraPreprocess | None, Doc("A camera image in planes, instead of `fed_type`.")
    ] = None
    mean: Annotated[PerChannel, Doc("Mean to subtract, in units of the raw value (0..255).")] = 0.0
    scale: Annotated[PerChannel, Doc("Factor after the mean is subtracted: 1 / (255 * std).")] = 1.0
    offset: Annotated[
        Literal[0, 128] | None,
        Doc("128: 8-bit values, fed as value - 128. 0: fed unchanged. Default: 128 for images."),
    ] = None
    value: Annotated[
        bool | float | tuple[float, ...] | None,
        Doc("Freezes an input that never changes: one number for all elements, or one for each."),
    ] = None


@dataclass(frozen=True)
class Files:
    """The samples of one input: files, one snapshot of them all, or random values."""

    files: Annotated[
        FileGlob | None,
        Doc(
            "A folder or pattern with one sample per file: .npy, .npz, .safetensors, .jpg, "
            ".png, .bmp; files with another suffix hold raw numbers."
        ),
    ] = None
    snapshot: Annotated[
        FilePath | None,
        Doc("All samples in one .safetensors: EdgeFirst's calibration snapshot."),
    ] = None
    random: Annotated[
        int | None, Doc("Number of random samples: for timing, not for accuracy.", 1, 4096)
    ] = None
    member: Annotated[str | None, Doc("Name of the array in a file with several arrays.")] = None
    stacked: Annotated[
        bool, Doc("A .npy, .npz or .safetensors file holds many samples along its first dimension.")
    ] = False
    dtype: Annotated[
        Literal["uint8", "float32"] | None,
        Doc(
            "Type of raw numbers. Default: uint8 for an 8-bit image, else the type of the "
            "input. An .npy file of another type is converted."
        ),
    ] = None
    channels: Annotated[
        Order | None,
        Doc(
            "Channel order of a decoded image (OpenCV: bgr); auto: gray for one channel. "
            "Default: the order that the first color transform takes, else the input's "
            "`type`."
        ),
    ] = None
    normalized: Annotated[
        bool, Doc("The samples are already (raw - mean) * scale; this is reverted.")
    ] = False
    values: Annotated[
        Literal["0..255", "0..1"],
        Doc("Type of a decoded image: uint8, or float as in scikit-image."),
    ] = "0..255"
    transforms: Annotated[tuple[Transform, ...], Doc("Transforms of a sample, in order.")] = ()
    range: Annotated[
        tuple[float, ...] | None,
        Doc("[lowest, highest] value of a sample. Default: [0, 255] for an 8-bit image."),
    ] = None
    allow: Annotated[
        tuple[FINDING, ...],
        Doc("Findings about the samples to ignore."),
    ] = ()
    warn: Annotated[
        tuple[FINDING, ...],
        Doc("Findings about the samples that warn instead of failing the build."),
    ] = ()


@dataclass(frozen=True)
class Code:
    """Python files to run, and the Python files they import."""

    files: Annotated[CodeGlob, Doc("Pattern of Python files in the project.")]
    with_: Annotated[
        tuple[ModuleGlob, ...],
        Doc("Patterns of Python files in the project that these files import."),
    ] = ()


CodeFiles: TypeAlias = CodeGlob | Code


@dataclass(frozen=True)
class Sections:
    """A whole project file. Keys of `inputs` and `data` are names of model inputs, or `*`."""

    model: Annotated[ModelSection, Doc("The trained float model.")]
    data: Annotated[
        Mapping[str, Files],
        Doc("Calibration samples by input name; a model with its own scales needs none."),
    ] = field(default_factory=dict, kw_only=True)
    targets: Annotated[
        tuple[str | TargetOverlay, ...],
        Doc(
            "Chips to build for, see `npumake list --targets`; a chip may override keys of "
            "the project."
        ),
    ]
    inputs: Annotated[
        Mapping[str, Input],
        Doc("Preprocessing by input name. The model gets (color(x + offset) - mean) * scale."),
    ] = field(default_factory=dict)
    calibration: Annotated[Calibration, Doc("How ranges are calibrated.")] = field(
        default_factory=Calibration
    )
    quantization: Annotated[
        Quantization, Doc("Which tensors are quantized, and to which type.")
    ] = field(default_factory=Quantization)
    compile: Annotated[Compile, Doc("Options of the compiled files.")] = field(
        default_factory=Compile
    )
    cost: Annotated[
        BoardCost | None, Doc("Figures of your board, which the vendor does not publish.")
    ] = None
    comparison: Annotated[
        ComparisonSettings, Doc("How nodes are compared and compiled files are checked.")
    ] = field(default_factory=ComparisonSettings)
    security: Annotated[
        Security, Doc("Security policies of inputs and outputs, for `npumake secure`.")
    ] = field(default_factory=Security)
    evaluation: Annotated[Evaluation | None, Doc("Task metrics of the artifacts.")] = None
    gates: Annotated[
        tuple[Gate, ...] | None,
        Doc("Conditions of the build; it fails with exit code 6 if one is not met."),
    ] = None
    report: Annotated[
        Report | None, Doc("One HTML page for all targets and variants of the project.")
    ] = None
    custom_operators: Annotated[
        tuple[CodeFiles, ...],
        Doc("Patterns of Python files in the project that implement custom operators."),
    ] = ()
    variants: Annotated[
        Mapping[str, Overlay],
        Doc("Changed keys by variant name: mappings are merged, other values replaced."),
    ] = field(default_factory=dict)
    matrix: Annotated[
        Mapping[str, tuple[Any, ...]],
        Doc("Values by dotted key; every combination is a variant."),
    ] = field(default_factory=dict)
    dialect: Annotated[
        str | None, Doc("A vendor's tool; its YAML file provides the keys that are absent here.")
    ] = None
    config: Annotated[FilePath | None, Doc("YAML file of `dialect`.")] = None
