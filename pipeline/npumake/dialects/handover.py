"""The input of a vendor's closed tool: its YAML, and samples in the format it reads.

Each vendor's `handover.py` reverses its `dialect.py`: it translates native keys to the vendor's. A
project in the vendor's dialect keeps its document; only the file names in it change. `omissions`
lists the settings for which the vendor has no key.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.digest import Json
from npumake.project.sections import Calibration, Quantization, Sections
from npumake.targets.target import Target

CALIBRATION = "calibration"  # contains one folder per input
PRODUCTS = "model_output"  # the tool's output folder
Unit = Literal["cpu", "npu"]
PATTERN = ("*", "...", "->", "(")  # signs of a selector, which no vendor's tool knows


class CommandNames(NamedTuple):
    """Arguments of the tool's command: the model, Caffe's weights, the chip, and profiling."""

    model: str
    weights: str | None
    chip: str
    profiling: bool = False


@dataclass(frozen=True)
class NodeDecision:
    """The unit and types of one node. `whole` is the type of a node that stays float."""

    unit: Unit | None = None
    whole: str | None = None
    inputs: Mapping[int, str] = field(default_factory=dict)  # type by operand
    operands: int = 0  # number of operands
    output: str | None = None


@dataclass(frozen=True)
class Decisions:
    """The decisions of a build per node, and the result of its search. `nodes` are named as in the
    trained model; `nameless` lists requests for nodes that the model lacks."""

    nodes: Mapping[str, NodeDecision] = field(default_factory=dict)
    nameless: tuple[str, ...] = ()
    calibration: Calibration = field(default_factory=Calibration)  # with the selected method
    extra_switches: tuple[str, ...] = ()  # kept by the search, not named by the project
    has_recipe: bool = False


@dataclass(frozen=True)
class HandoverRequest:
    """A project for one target.

    `model` and `weights` are files of the hand-over. `folders` holds the sample folder per input,
    None without samples. `vendor_document` is None for a native project. `snapshot` is one file
    with all samples, for a tool that takes it."""

    sections: Sections
    target: Target
    inputs: Mapping[str, ModelInput]
    prefix: str
    model: str
    weights: str | None = None
    folders: Mapping[str, str] | None = None
    vendor_document: Json = None
    snapshot: str | None = None
    decisions: Decisions | None = None

    @property
    def calibration(self) -> Calibration:
        """The project's calibration; a search is replaced by the method it selected."""
        return (self.decisions or self.sections).calibration

    @property
    def command_names(self) -> CommandNames:
        profiling = self.sections.compile.profiling
        return CommandNames(self.model, self.weights, self.target.name, profiling)


@dataclass(frozen=True)
class HandoverDocument:
    """The vendor's document, and the settings of the project that it cannot express."""

    document: Json
    omissions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClosedTool:
    """A vendor's tool. `sample` converts raw training values, before mean and scale; None if the
    tool reads no sample files. `command` is empty if there is no command to call."""

    name: str
    dialect: str
    config: str  # file name of its document
    models: tuple[str, ...]  # suffixes of the model formats it reads
    render: Callable[[HandoverRequest], HandoverDocument]
    command: Callable[[CommandNames], tuple[str, ...]]
    product: str  # file name of its product, with {prefix}
    sample: Callable[[np.ndarray, ModelInput], np.ndarray] | None = None
    suffix: str = ".npy"  # of a sample file; all others hold raw numbers without a header
    snapshot: bool = False  # whether it takes all samples as one EdgeFirst snapshot


def with_values(
    vendor_document: Json, changes: Mapping[str, Mapping[str, Json]]
) -> HandoverDocument:
    """The vendor's own document with `changes` by group and key; None removes a key."""
    document = copy.deepcopy(vendor_document)
    for group, keys in changes.items():
        inside = document.setdefault(group, {})
        for key, value in keys.items():
            inside[key] = value
            if value is None:
                del inside[key]
    return HandoverDocument(document)


def omitted_keys(quantization: Quantization, *carried: str) -> list[str]:
    """The keys of `quantization:` with a non-default value, except the `carried` ones."""
    return [
        f"quantization.{option.name}"
        for option in fields(quantization)
        if option.name not in (*carried, "optional")
        and getattr(quantization, option.name) != _default(option)
    ]


def is_pattern(name: str) -> bool:
    return any(sign in name for sign in PATTERN)


def _default(field: Any) -> Any:
    return field.default_factory() if field.default is MISSING else field.default
