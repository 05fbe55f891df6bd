"""`npumake new --images`: the files of a project around a model and a folder of pictures."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npumake.cli.fed_types import EVEN_TYPES
from npumake.cli.labels_file import LabelsFile, read_labels
from npumake.cli.model_file import ModelFiles
from npumake.cli.picture_template import PictureProject, Truth, picture_project_text
from npumake.cli.pictures import picture_files, relative_pattern, surveyed, unread_words
from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.cli.template import Facts, TemplateInput
    from npumake.graph import Graph
    from npumake.recognition.facts import ModelFacts
    from npumake.recognition.proposal import Proposal

METADATA = "edgefirst.json"


class ProjectFiles(NamedTuple):
    """The YAML, further files by name, the inputs with random samples, and lines to print."""

    text: str
    files: dict[str, bytes]
    random: tuple[TemplateInput, ...]
    lines: tuple[str, ...]


def picture_project(
    arguments: argparse.Namespace,
    model_files: ModelFiles,
    graph: Graph,
    facts: Facts,
    schema: str,
    targets: Sequence[str],
) -> ProjectFiles:
    """Raises PipelineError, for a model that takes no picture too."""
    from npumake.cli.template import with_folders

    pictures = picture_files(arguments.images)
    labels = read_labels(arguments.labels) if arguments.labels else LabelsFile()
    survey = surveyed(model_files, graph, pictures.files)
    proposal = _with_labels(survey.proposal, survey.facts, labels)
    if pictures.unread:
        doubt = f"{len(pictures.files)} pictures are read, {unread_words(pictures.unread)}"
        proposal = replace(proposal, doubts=(*proposal.doubts, doubt))
    inputs = with_folders(survey.inputs)
    metadata = _metadata(proposal, survey.facts)
    project = PictureProject(
        schema,
        facts,
        survey.facts,
        proposal,
        inputs,
        relative_pattern(pictures, arguments.directory),
        len(pictures.files),
        _fed_type(arguments.fed_type, survey.facts, proposal),
        METADATA if metadata else "",
        _truth(arguments, labels, proposal),
        targets,
    )
    files = {METADATA: metadata} if metadata else {}
    return ProjectFiles(
        picture_project_text(project), files, project.random, tuple(_lines(project))
    )


def _with_labels(proposal: Proposal, facts: ModelFacts, labels: LabelsFile) -> Proposal:
    """The class names of `--labels` replace the model's own; a doubt if their number does not
    match."""
    from npumake.recognition.facts import classes_of

    family = proposal.family
    names = labels.classes or family.labels or facts.tflite.labels
    count = len(family.labels) or classes_of(facts)
    if names and len(names) == count - 1 and family.label_offset:
        names = ("background", *names)
    doubts = proposal.doubts
    if names and count and len(names) != count:
        doubts += (f"{len(names)} class names for {count} classes",)
    return replace(proposal, family=replace(family, labels=tuple(names)), doubts=doubts)


def _metadata(proposal: Proposal, facts: ModelFacts) -> bytes:
    """edgefirst.json, empty without content."""
    from npumake.detection.notes import metadata_of
    from npumake.recognition.ultralytics import base_metadata

    family = proposal.family
    document = family.metadata
    if metadata_of(facts.graph) is not None and document is None:
        return b""  # the model carries its own
    if document is None and family.labels:
        kind = family.task if family.task in ("classify", "segment") else "detect"
        document = base_metadata(facts, (), kind)
    if document is None:
        return b""
    camera = "grey" if proposal.feed.colors == "gray" else proposal.feed.colors
    document = {
        **document,
        "dataset": {"classes": list(family.labels)},
        "input": {**document["input"], "cameraadaptor": camera},
    }
    return f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode()


def _fed_type(requested: str | None, facts: ModelFacts, proposal: Proposal) -> str:
    """Raises ProjectError for a type that the input cannot be fed."""
    colors = proposal.feed.colors
    if requested is None or requested == colors:
        return colors
    if colors == "gray":
        raise ProjectError(f"a gray input cannot be fed {requested}", "--fed-type", "leave it out")
    if requested in EVEN_TYPES and any(side % 2 for side in facts.image.size):
        height, width = facts.image.size
        raise ProjectError(f"{requested} needs even sides, not {height} x {width}", "--fed-type")
    return requested


def _truth(arguments: argparse.Namespace, labels: LabelsFile, proposal: Proposal) -> Truth | None:
    """Raises ProjectError for labels that do not fit the model's task."""
    if not labels.is_truth:
        return None
    is_detector = proposal.family.task == "detect"
    if labels.has_boxes != is_detector:
        message = "boxes" if labels.has_boxes else "one label per picture"
        raise ProjectError(
            f"{message} for a model that was recognized as `{proposal.family.task}`",
            str(arguments.labels),
            "a detector takes COCO's .json, a classifier a .csv of file,label",
        )
    start = os.path.abspath(arguments.directory)
    file = Path(os.path.relpath(os.path.abspath(arguments.labels), start)).as_posix()
    return Truth(file, "map50" if is_detector else "top1", labels.column or "label")


def _lines(project: PictureProject) -> list[str]:
    proposal, image = project.proposal, project.model.image
    height, width = image.size
    layout = "NHWC" if image.is_nhwc else "NCHW"
    lines = [
        f"  recognized: {proposal.name} ({proposal.family.evidence})",
        f"  input `{image.name}`: {proposal.feed.words}, {layout}, {height} x {width}",
    ]
    lines += [f"  evidence: {words}" for words in proposal.evidence[1:]]
    lines += [f"  NOT SURE: {words}" for words in proposal.doubts]
    if names := proposal.family.labels:
        lines.append(
            f"  {len(names)} class names: {', '.join(names[:3])}{', …' * (len(names) > 3)}"
        )
    lines.append(f"  {project.pictures} pictures calibrate: {project.pattern}")
    return lines
