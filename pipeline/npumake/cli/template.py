"""The YAML of a new project: facts from the model, and comments for the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from npumake.project.schema import schema_of
from npumake.project.sections import Sections
from npumake.recognition.facts import InputGrid

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./*-]*")

DODO = '''"""`doit` in this directory builds this project."""

from npumake.dodo import doit_config, task_npumake

DOIT_CONFIG = doit_config()

__all__ = ["DOIT_CONFIG", "task_npumake"]
'''

_WARNING = """\
# !!! THE SAMPLES ARE RANDOM NUMBERS, so that the project builds as it is. Thresholds and accuracies
# !!! from them are meaningless. Replace them by real inputs, some 20 to 100 of them, one .npy file
# !!! each."""
_PIXELS = """\
    # Was the model trained on 8-bit images? It computes (pixel - mean) * scale; for example:
    # offset: 128 # the chip is fed pixel - 128, and the samples hold pixels, 0..255
    # mean: {mean}
    # scale: {scale} # 1 / (255 * std)
"""
_GRID = """\
    # the file quantizes it: {dtype}, scale {scale:.9g}, zero point {zero_point}, so it reads
    # {low:.6g} ... {high:.6g}"""
_GRID_PIXELS = """\
    # Is it fed 8-bit images? Its codes are the pixels then, and these are the numbers:
    # offset: 128 # the chip is fed pixel - 128, and the samples hold pixels, 0..255
    # mean: {mean:g}
    # scale: {scale:.9g}"""
_METHODS = {
    "load": "the model carries its own scales",
    "default": "the closest on held-out samples",
}
_IMAGENET = {
    1: ("0", "0.00392157"),
    3: ("[123.675, 116.28, 103.53]", "[0.0171248, 0.017507, 0.0174292]"),
}


@dataclass(frozen=True)
class Facts:
    """Facts about a model's file: its name, opset, pattern of external weights, and whether it
    carries scales."""

    model: str
    opset: int
    weights: str
    quantized: bool


@dataclass(frozen=True)
class TemplateInput:
    """One input: its fixed shape, the model's open dimensions, and the folder of its samples."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    opened: str  # "[N, 3, H, W]", empty if the model fixes every dimension
    folder: str = "samples"
    grid: InputGrid | None = None  # of the file

    @property
    def layout(self) -> str | None:
        """The layout of an image; None for other inputs."""
        if len(self.shape) != 4:
            return None
        last = self.shape[3] in _IMAGENET and self.shape[1] not in _IMAGENET
        return "NHWC" if last else "NCHW"

    @property
    def is_setting(self) -> bool:
        """Whether the input may be a setting, such as a sampling rate: one integer or boolean."""
        return prod(self.shape) == 1 and self.dtype.startswith(("int", "uint", "bool"))

    @property
    def channels(self) -> int:
        return self.shape[3 if self.layout == "NHWC" else 1] if self.layout else 0


def with_folders(inputs: Sequence[TemplateInput]) -> tuple[TemplateInput, ...]:
    """The inputs; if there are several, each with its own folder, named after it."""
    if len(inputs) == 1:
        return tuple(inputs)
    entries = []
    for number, model_input in enumerate(inputs):
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", model_input.name)
        entries.append(replace(model_input, folder=f"samples/{number}-{name}"))
    return tuple(entries)


def project_text(
    schema: str, facts: Facts, inputs: Sequence[TemplateInput], targets: Sequence[str], chips: str
) -> str:
    """project.yaml. `schema` is a path from its folder, `known` names every chip."""
    keys = schema_of(Sections)["properties"]["calibration"]["properties"]
    method = "load" if facts.quantized else "default"
    others = ", ".join(name for name in keys["method"]["enum"] if name != method)
    lines = [
        f"# yaml-language-server: $schema={schema}",
        "model:",
        f"  path: {word(facts.model)} # opset {facts.opset}",
        *([f"  weights: {word(facts.weights)}"] if facts.weights else []),
        "",
        "inputs: # the model gets (value + offset - mean) * scale",
        *(_input(model_input) for model_input in inputs),
        "",
        _WARNING,
        "data:",
        *(random_samples(model_input) for model_input in inputs),
        "",
        "calibration:",
        f"  method: {method} # {_METHODS[method]}; or {others}",
        "",
        f"targets: # {chips}",
        *(f"  - {target}" for target in targets),
        "",
        "# One page on errors layer by layer, distributions and samples, out/report.html:",
        "# report: {}",
        "",
        "# The same model with other keys, beside this one; mappings merge, all else replaces:",
        "# variants:",
        "#   p999: {calibration: {method: max_percentile, percentile: 0.999}}",
    ]
    return "\n".join(lines) + "\n"


def word(text: str) -> str:
    """A text as a YAML scalar, quoted if needed."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _input(model_input: TemplateInput) -> str:
    lines = [f"  {word(model_input.name)}: # {model_input.dtype}"]
    if model_input.opened:
        lines.append(f"    # the model leaves {model_input.opened} open: write the size you feed")
    lines.append(f"    shape: {list(model_input.shape)}")
    if model_input.is_setting:
        lines.append(
            "    # value: 1 # if it never changes: freezes it, and `data` has no samples of it"
        )
    if model_input.layout:
        lines.append(f"    layout: {model_input.layout} # where the channels are, NCHW or NHWC")
    if model_input.grid is not None:
        lines += _grid_lines(model_input.grid, is_image=model_input.channels in _IMAGENET)
    elif model_input.channels in _IMAGENET:
        mean, scale = _IMAGENET[model_input.channels]
        lines.append(_PIXELS.format(mean=mean, scale=scale).rstrip())
    return "\n".join(lines)


def _grid_lines(grid: InputGrid, *, is_image: bool) -> list[str]:
    low, high = grid.reach
    lines = [_GRID.format(**grid._asdict(), low=low, high=high)]
    return [*lines, _GRID_PIXELS.format(mean=grid.mean, scale=grid.scale)] if is_image else lines


def random_samples(model_input: TemplateInput) -> str:
    message = f"{model_input.dtype}, {list(model_input.shape)}"
    return f"  {word(model_input.name)}:\n    files: {model_input.folder}/*.npy # each {message}"
