"""What a vendor's closed tool is handed: its YAML, and samples in the form it reads.

Each vendor's `handover.py` is the other way of its `dialect.py`: from our words to its own. Where a
project is written in those already, its document is kept, and only the files it names change.
What a project says and the vendor has no word for is told in `left_out`.
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

CALIBRATION = "calibration"  # the folder of a folder per input
PRODUCTS = "model_output"  # where the tool leaves what it makes
Unit = Literal["cpu", "npu"]
PATTERN = ("*", "...", "->", "(")  # what makes a node's name one of ours


class CommandNames(NamedTuple):
    """What a command names: the model's file, Caffe's weights, the chip; whether it profiles."""

    model: str
    weights: str | None
    chip: str
    profiling: bool = False


@dataclass(frozen=True)
class NodeDecision:
    """Of one node: its unit, the type of all of it where that is float, and of single places."""

    unit: Unit | None = None
    whole: str | None = None
    inputs: Mapping[int, str] = field(default_factory=dict)  # by operand
    operands: int = 0  # how many it has
    output: str | None = None


@dataclass(frozen=True)
class Decisions:
    """What a build decides, name by name, and what its search has found. `nodes` have the names
    of the trained model; `nameless` are nodes that it does not have."""

    nodes: Mapping[str, NodeDecision] = field(default_factory=dict)
    nameless: tuple[str, ...] = ()
    calibration: Calibration = field(default_factory=Calibration)  # with the method found
    found: tuple[str, ...] = ()  # switches that the search keeps and the project does not name
    has_recipe: bool = False


@dataclass(frozen=True)
class HandoverRequest:
    """A project for one target. `model` and `weights` are files of the hand-over, `folders` the
    samples' by input, none where there are no samples; `said` is the vendor's own document, None
    of a project in our words; `snapshot` is the file of all samples, for a tool that takes one."""

    sections: Sections
    target: Target
    inputs: Mapping[str, ModelInput]
    prefix: str
    model: str
    weights: str | None = None
    folders: Mapping[str, str] | None = None
    said: Json = None
    snapshot: str | None = None
    decisions: Decisions | None = None

    @property
    def calibration(self) -> Calibration:
        """As the project says it, the method that a search has found in place of the search."""
        said = self.sections.calibration
        return said if self.decisions is None else self.decisions.calibration

    @property
    def named(self) -> CommandNames:
        profiling = self.sections.compile.profiling
        return CommandNames(self.model, self.weights, self.target.name, profiling)


@dataclass(frozen=True)
class Handed:
    """The vendor's document, and what it does not say of the project."""

    document: Json
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tool:
    """A vendor's tool. `sample` takes what a model was trained on, before mean and scale; without
    it the tool reads no such files. `command` is empty where there is none to call."""

    name: str
    dialect: str
    config: str  # the file of its document
    models: tuple[str, ...]  # the formats it reads
    written: Callable[[HandoverRequest], Handed]
    command: Callable[[CommandNames], tuple[str, ...]]
    product: str  # what it makes, with {prefix}
    sample: Callable[[np.ndarray, ModelInput], np.ndarray] | None = None
    suffix: str = ".npy"  # of a sample; any other: bare numbers
    snapshot: bool = False  # whether it takes all samples as one file of EdgeFirst's contract


def renamed(vendor_document: Json, changes: Mapping[str, Mapping[str, Json]]) -> Handed:
    """The vendor's own document with other values by group and key; None takes a key away."""
    document = copy.deepcopy(vendor_document)
    for group, keys in changes.items():
        inside = document.setdefault(group, {})
        for key, value in keys.items():
            inside[key] = value
            if value is None:
                del inside[key]
    return Handed(document)


def unsaid(quantization: Quantization, *handled: str) -> list[str]:
    """The keys of `quantization:` that ask for something, but for those that are handled."""
    return [
        f"quantization.{option.name}"
        for option in fields(quantization)
        if option.name not in (*handled, "optional")
        and getattr(quantization, option.name) != _default(option)
    ]


def is_pattern(name: str) -> bool:
    return any(sign in name for sign in PATTERN)


def _default(field: Any) -> Any:
    return field.default_factory() if field.default is MISSING else field.default
