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

Overlay = NewType("Overlay", dict[str, Any])  # keys of the project that replace what stands there
TargetOverlay = NewType("TargetOverlay", dict[str, Any])  # the one target it is for: an Overlay


FINDING = Literal[  # about samples
    "few", "blank", "duplicate", "range", "preprocessing", "wild", "constant", "padding"
]
Order = Literal["rgb", "bgr", "gray", "auto"]  # of the channels of an image that is read
PerChannel = float | tuple[float, ...]  # one number for all channels, or one per channel


@dataclass(frozen=True)
class ModelSection:
    path: Annotated[FilePath, Doc("The trained network (.onnx, .tflite, .pb, .prototxt).")]
    split: Annotated[
        Literal["none", "hints"],
        Doc("hints: a detector's outputs are cut as `split_hints` of its metadata say."),
    ] = "none"
    metadata: Annotated[
        FilePath | None,
        Doc("An edgefirst.json beside the model; an ONNX model may hold it itself."),
    ] = None
    weights: Annotated[
        FileGlob | None,
        Doc("Weights in files of their own: the .caffemodel, or what an .onnx refers to."),
    ] = None
    inputs: Annotated[
        tuple[str, ...],
        Doc("Tensors to begin the model at; what only leads up to them is dropped."),
    ] = ()
    output_count: Annotated[
        int | None, Doc("How many outputs are spoken of: a model with fewer is refused.", 1)
    ] = None
    outputs: Annotated[
        tuple[str, ...],
        Doc("Nodes or tensors to end the model at; what only later nodes need is dropped."),
    ] = ()
    remove_types: Annotated[
        tuple[Literal["Quantize", "Dequantize", "Transpose", "Cast", "Reshape", "Softmax"], ...],
        Doc("Removed where they stand at the border of the model, type by type in this order."),
    ] = ()
    remove_nodes: Annotated[
        tuple[str, ...],
        Doc("Nodes at the border to remove, in this order, after `remove_types`."),
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
        Doc("What the camera gives; `float32` is no picture and passes as it is."),
    ]
    size: Annotated[
        tuple[int, ...] | None,
        Doc("[height, width] of the picture where it is not the model's.", 1, 8192),
    ] = None
    crop: Annotated[
        bool, Doc("Four more inputs say which rectangle to use: width, height, left, top.")
    ] = False


@dataclass(frozen=True)
class Input:
    """The trained form of one model input and the form it is fed at run time.

    The model gets (colour(x + offset) - mean) * scale.
    """

    shape: Annotated[
        tuple[int, ...] | None, Doc("Needed where the model leaves a dimension open.", minimum=1)
    ] = None
    batch: Annotated[
        int,
        Doc("Images per run of the compiled file; the model itself takes one.", 1, 128),
    ] = 1
    layout: Annotated[Literal["NCHW", "NHWC"], Doc("Where the channels are, as trained.")] = "NCHW"
    fed_layout: Annotated[
        Literal["NCHW", "NHWC"] | None, Doc("Where the channels are, as fed; `layout` by default.")
    ] = None
    type: Annotated[
        Literal["rgb", "bgr", "gray", "yuv444", "featuremap"] | None,
        Doc("What the model was trained on; `featuremap` by default, `rgb` with `preprocess`."),
    ] = None
    fed_type: Annotated[
        Literal["rgb", "bgr", "gray", "yuv444", "nv12", "featuremap"] | None,
        Doc("What the chip is given; `type` by default. nv12 reaches the model as yuv444."),
    ] = None
    color_range: Annotated[
        Literal["full", "video"], Doc("Of a YUV picture: 0..255, or BT.601 video, 16..235.")
    ] = "full"
    preprocess: Annotated[
        CameraPreprocess | None, Doc("A camera's picture in planes, instead of `fed_type`.")
    ] = None
    mean: Annotated[PerChannel, Doc("Subtracted, in units of the raw value (0..255).")] = 0.0
    scale: Annotated[PerChannel, Doc("Multiplied, after the mean: 1 / (255 * std).")] = 1.0
    offset: Annotated[
        Literal[0, 128] | None,
        Doc("128: 8-bit, fed as value - 128. 0: fed as it is. By default 128 for pictures."),
    ] = None


@dataclass(frozen=True)
class Files:
    """The samples of one input: files, one snapshot of them all, or random values."""

    files: Annotated[
        FileGlob | None,
        Doc(
            "A folder or a pattern, one sample per file: .npy, .npz, .safetensors, .jpg, .png, "
            ".bmp; any other suffix is the bare numbers."
        ),
    ] = None
    snapshot: Annotated[
        FilePath | None,
        Doc("All samples in one .safetensors: EdgeFirst's calibration snapshot."),
    ] = None
    random: Annotated[
        int | None, Doc("So many samples of seeded noise: for timing, not for accuracy.", 1, 4096)
    ] = None
    member: Annotated[str | None, Doc("The array in a file that holds several.")] = None
    stacked: Annotated[
        bool, Doc("A .npy, .npz or .safetensors holds many samples; its first dimension counts.")
    ] = False
    dtype: Annotated[
        Literal["uint8", "float32"] | None,
        Doc(
            "Of bare numbers. Default: uint8 for an 8-bit image, else what the input takes. An "
            ".npy file of another type is converted."
        ),
    ] = None
    channels: Annotated[
        Order | None,
        Doc(
            "An image is read in this order (OpenCV reads bgr); auto: gray for one channel. "
            "Default: as the first transform of colours takes it, else the input's `type`."
        ),
    ] = None
    normalized: Annotated[
        bool, Doc("The values are (raw - mean) * scale already, and are taken back to raw.")
    ] = False
    values: Annotated[
        Literal["0..255", "0..1"], Doc("An image is read as uint8, or as float (scikit-image).")
    ] = "0..255"
    transforms: Annotated[
        tuple[Transform, ...], Doc("What is done to a sample, step by step, before it is fed.")
    ] = ()
    range: Annotated[
        tuple[float, ...] | None,
        Doc("[lowest, highest] value a sample may hold. Default: [0, 255] for an 8-bit image."),
    ] = None
    allow: Annotated[
        tuple[FINDING, ...],
        Doc("Findings about the samples that do not fail the build."),
    ] = ()
    warn: Annotated[
        tuple[FINDING, ...],
        Doc("Findings about the samples that are told, and do not fail the build."),
    ] = ()


@dataclass(frozen=True)
class Code:
    """Python files to run, and the Python files they import."""

    files: Annotated[CodeGlob, Doc("A pattern of Python files in the project.")]
    with_: Annotated[
        tuple[ModuleGlob, ...], Doc("Patterns of Python files in the project that these import.")
    ] = ()


CodeFiles: TypeAlias = CodeGlob | Code


@dataclass(frozen=True)
class Sections:
    """A whole project file. Keys of `inputs` and `data` are names of model inputs, or `*`."""

    model: Annotated[ModelSection, Doc("The trained float model.")]
    data: Annotated[
        Mapping[str, Files],
        Doc(
            "Samples to calibrate with, by input name; a model that carries its scales needs none."
        ),
    ] = field(default_factory=dict, kw_only=True)
    targets: Annotated[
        tuple[str | TargetOverlay, ...],
        Doc("Chips to build for, see `npumake list --targets`; a chip may overlay the project."),
    ]
    inputs: Annotated[
        Mapping[str, Input],
        Doc(
            "How each model input is fed, by its name. The model gets "
            "(colour(x + offset) - mean) * scale."
        ),
    ] = field(default_factory=dict)
    calibration: Annotated[Calibration, Doc("How thresholds are chosen.")] = field(
        default_factory=Calibration
    )
    quantization: Annotated[Quantization, Doc("What is quantized, and to what.")] = field(
        default_factory=Quantization
    )
    compile: Annotated[Compile, Doc("What the compiled files are.")] = field(
        default_factory=Compile
    )
    cost: Annotated[
        BoardCost | None, Doc("Figures of your board, which the vendor does not publish.")
    ] = None
    comparison: Annotated[ComparisonSettings, Doc("How the compiled files are checked.")] = field(
        default_factory=ComparisonSettings
    )
    security: Annotated[
        Security, Doc("Security policies of inputs and outputs, for `npumake secure`.")
    ] = field(default_factory=Security)
    evaluation: Annotated[Evaluation | None, Doc("How good the artifacts are at their task.")] = (
        None
    )
    gates: Annotated[
        tuple[Gate, ...] | None,
        Doc("Conditions; where one is not met the build fails with exit code 6."),
    ] = None
    report: Annotated[
        Report | None, Doc("One HTML page of the project, on every target and variant.")
    ] = None
    custom_operators: Annotated[
        tuple[CodeFiles, ...],
        Doc("Patterns of Python files in the project that implement operators ONNX does not know."),
    ] = ()
    variants: Annotated[
        Mapping[str, Overlay],
        Doc("By name, the keys that differ: mappings merge, all else replaces."),
    ] = field(default_factory=dict)
    matrix: Annotated[
        Mapping[str, tuple[Any, ...]],
        Doc("Dotted keys and their values; every combination is a variant named for them."),
    ] = field(default_factory=dict)
    dialect: Annotated[
        str | None, Doc("A vendor's tool whose YAML file says what is not said here.")
    ] = None
    config: Annotated[FilePath | None, Doc("The YAML file of `dialect`.")] = None
