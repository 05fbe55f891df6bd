"""What a project says, section by section: the YAML keys, their types and their defaults.

This is the only home of a key and its default. `schema.py` prints these dataclasses as JSON
Schema, `reader.py` builds them from YAML, and a stage names the section it reads as a parameter.
The text after a field is its help in an editor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NewType

FilePath = NewType("FilePath", str)  # one file, relative to the project directory
FileGlob = NewType("FileGlob", str)  # many files, by a shell pattern; sorted by name


@dataclass(frozen=True)
class Doc:
    """Help for a key, shown by editors, with the limits a schema can check."""

    text: str
    minimum: float | None = None
    maximum: float | None = None


PerChannel = float | tuple[float, ...]  # one number for all channels, or one per channel


@dataclass(frozen=True)
class Model:
    path: Annotated[FilePath, Doc("The trained float network (.onnx).")]


@dataclass(frozen=True)
class Input:
    """How one model input is fed at run time. The model computes (x + offset - mean) * scale."""

    shape: Annotated[
        tuple[int, ...] | None, Doc("Needed where the model leaves a dimension open.", minimum=1)
    ] = None
    layout: Annotated[Literal["NCHW", "NHWC"], Doc("Where the channels are.")] = "NCHW"
    mean: Annotated[PerChannel, Doc("Subtracted, in units of the raw value (0..255).")] = 0.0
    scale: Annotated[PerChannel, Doc("Multiplied, after the mean: 1 / (255 * std).")] = 1.0
    offset: Annotated[
        Literal[0, 128],
        Doc("128: an 8-bit image, fed to the chip as value - 128. 0: a feature map."),
    ] = 0


@dataclass(frozen=True)
class Files:
    files: Annotated[FileGlob, Doc("Pattern of .npy files, one sample each (raw values).")]
    normalized: Annotated[
        bool, Doc("The values are (raw - mean) * scale already, and are taken back to raw.")
    ] = False


@dataclass(frozen=True)
class Calibration:
    method: Annotated[
        Literal["max", "max_percentile", "kl"],
        Doc("How a threshold is chosen from the statistics."),
    ] = "kl"
    percentile: Annotated[
        float,
        Doc("Of max_percentile: the share of values kept.", minimum=0.5, maximum=1.0),
    ] = 0.99995


@dataclass(frozen=True)
class Compile:
    prefix: Annotated[
        str | None, Doc("Name of the compiled file; the project's name by default.")
    ] = None


@dataclass(frozen=True)
class Sections:
    """A whole project file. `inputs` and `data` are by name of the model's input, `*` the rest."""

    model: Annotated[Model, Doc("The trained float model.")]
    data: Annotated[Mapping[str, Files], Doc("Samples to calibrate with, by input name.")]
    targets: Annotated[tuple[str, ...], Doc("Chips to build for, see `npumake list --targets`.")]
    inputs: Annotated[
        Mapping[str, Input],
        Doc(
            "How each model input is fed, by its name. The model gets (x + offset - mean) * scale."
        ),
    ] = field(default_factory=dict)
    calibration: Annotated[Calibration, Doc("How thresholds are chosen.")] = Calibration()
    compile: Annotated[Compile, Doc("What the compiled files are.")] = Compile()
    dialect: Annotated[
        str | None, Doc("A vendor's tool whose YAML file says what is not said here.")
    ] = None
    config: Annotated[FilePath | None, Doc("The YAML file of `dialect`.")] = None
