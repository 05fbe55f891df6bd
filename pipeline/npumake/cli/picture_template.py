"""The YAML of a project around a model and pictures, with the evidence for each proposal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from npumake.cli.template import Facts, TemplateInput, random_samples, word
from npumake.recognition.picture_settings import picture_setting

if TYPE_CHECKING:
    from npumake.recognition.facts import ModelFacts
    from npumake.recognition.proposal import Proposal

WIDTH = 96  # characters of a comment
FEWEST_FOR_SEARCH = 16  # pictures: kl, a candidate, needs as many
FEEDABLE = {
    "rgb": "rgb, bgr, yuv444 or nv12: the format at runtime",
    "bgr": "rgb, bgr, yuv444 or nv12: the format at runtime",
    "gray": "gray",
}


@dataclass(frozen=True)
class Truth:
    """The labels of the pictures: a file, its column of labels, and the metric."""

    file: str
    metric: str
    column: str = "label"


@dataclass(frozen=True)
class PictureProject:
    """The content of the YAML. `pattern` names the pictures, `metadata` is the file of the class
    names and heads, empty without one."""

    schema: str
    facts: Facts
    model: ModelFacts
    proposal: Proposal
    inputs: Sequence[TemplateInput]
    pattern: str
    pictures: int
    fed_type: str
    metadata: str
    truth: Truth | None
    targets: Sequence[str]

    @property
    def frozen(self) -> dict[str, tuple[int, ...]]:
        """The values of the inputs that say how a picture was resized."""
        size = self.model.image.size
        values = {x.name: picture_setting(x.name, prod(x.shape), size) for x in self.inputs}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def random(self) -> tuple[TemplateInput, ...]:
        """The inputs that random samples feed until the user replaces them."""
        others = {self.model.image.name, *self.frozen}
        return tuple(x for x in self.inputs if x.name not in others)


def picture_project_text(project: PictureProject) -> str:
    """project.yaml."""
    blocks = (_model, _inputs, _data, _calibration, _evaluation, _targets)
    texts = ["\n".join(lines) for block in blocks if (lines := list(block(project)))]
    return f"# yaml-language-server: $schema={project.schema}\n" + "\n\n".join(texts) + "\n"


def _model(project: PictureProject) -> Iterator[str]:
    yield f"# Proposed from the model and {project.pictures} pictures. Recognized: " + (
        f"{project.proposal.name}."
    )
    yield "model:"
    yield f"  path: {word(project.facts.model)} # opset {project.facts.opset}"
    if project.facts.weights:
        yield f"  weights: {word(project.facts.weights)}"
    if project.metadata:
        yield f"  metadata: {project.metadata} # the class names, and a detector's outputs"
    if project.proposal.family.split:
        yield "  split: hints # boxes, scores and the rest are outputs of their own"


def _inputs(project: PictureProject) -> Iterator[str]:
    yield "inputs: # the model gets (pixel - mean) * scale"
    for input_ in project.inputs:
        yield f"  {word(input_.name)}: # {input_.dtype}"
        if input_.opened:
            yield f"    # the model leaves {input_.opened} open: this size is proposed"
        yield f"    shape: {list(input_.shape)}"
        if input_.name == project.model.image.name:
            yield from _picture(project)
        elif input_.name in project.frozen:
            value = list(project.frozen[input_.name])
            yield f"    value: {value} # a constant: boxes are in pixels of the fed picture"


def _picture(project: PictureProject) -> Iterator[str]:
    feed = project.proposal.feed
    yield f"    layout: {'NHWC' if project.model.image.is_nhwc else 'NCHW'}"
    for words in project.proposal.evidence:
        yield from _comment(f"evidence: {words}")
    for words in project.proposal.doubts:
        yield from _comment(f"NOT SURE: {words}")
    yield f"    type: {feed.colors} # the colors of training"
    yield f"    fed_type: {project.fed_type} # {FEEDABLE[feed.colors]}"
    yield f"    mean: {_numbers(feed.mean)}"
    yield f"    scale: {_numbers(feed.scale)}"


def _data(project: PictureProject) -> Iterator[str]:
    yield "data:"
    for input_ in project.inputs:
        if input_ in project.random:
            yield "  # RANDOM numbers: replace them by real inputs"
            yield random_samples(input_)
        if input_.name != project.model.image.name:
            continue
        yield f"  {word(input_.name)}:"
        yield f"    files: {word(project.pattern)} # {project.pictures} pictures"
        yield "    transforms:"
        yield from (f"      - {step.yaml}" for step in project.proposal.family.resize)


def _calibration(project: PictureProject) -> Iterator[str]:
    yield "calibration:"
    if project.facts.quantized:
        yield "  method: load # the model carries its own scales"
    elif project.pictures < FEWEST_FOR_SEARCH:
        yield f"  method: max # default needs {FEWEST_FOR_SEARCH} pictures"
    else:
        yield "  method: default # the closest on held-out samples, of kl, max, percentiles and mse"


def _evaluation(project: PictureProject) -> Iterator[str]:
    truth, family = project.truth, project.proposal.family
    if truth is None:
        return
    yield "evaluation:"
    yield "  # the pictures that calibrate are scored too: name others for an honest figure"
    yield "  dataset:"
    yield f"    files: {word(project.pattern)}"
    yield f"    labels: {word(truth.file)}"
    if truth.column != "label":
        yield f"    label_column: {word(truth.column)}"
    if family.label_offset:
        yield f"    label_offset: {family.label_offset} # the model's class 0 is background"
    yield f"  metric: {truth.metric}"
    if family.task == "detect":
        yield f"  postprocess: {'ssd' if family.ssd else 'yolo'}"
    if family.ssd and family.ssd.yaml:
        yield "  ssd:"
        yield from (f"    {line}" for line in family.ssd.yaml)


def _targets(project: PictureProject) -> Iterator[str]:
    yield "targets: # see npumake targets"
    yield from (f"  - {target}" for target in project.targets)
    yield ""
    yield "report: {} # out/report.html"


def _comment(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, WIDTH - 6, subsequent_indent="  "):
        yield f"    # {line}"


def _numbers(values: Sequence[float]) -> str:
    texts = [f"{value:.9g}" for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
