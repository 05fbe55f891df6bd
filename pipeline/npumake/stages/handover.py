"""handover: the package for the vendor's own tool: its YAML, the model, samples, the exact command.

With `compile: {vendor_tool: true}` the tool runs on it. It is the directory that `npumake handover`
writes, as a ZIP. Settings that the tool's YAML cannot express are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from npumake.borders.inputs import model_inputs
from npumake.compilers.handover import Handover
from npumake.compilers.handover_package import NO_SAMPLES, files, model_names, sample_folders
from npumake.compilers.vendor_tool import PREFIX
from npumake.data.input_samples import InputSamples, input_samples
from npumake.detection.notes import tiling
from npumake.dialects.handover import ClosedTool, HandoverRequest
from npumake.dialects.tools import TOOLS, complete_document
from npumake.errors import ProjectError, Route
from npumake.graph import Graph
from npumake.progress import tell
from npumake.project.files import SourceFiles
from npumake.project.sections import (
    Calibration,
    CodeFiles,
    Compile,
    Files,
    Input,
    ModelSection,
    Quantization,
    Sections,
    Security,
)
from npumake.project.vendor import VendorDocument
from npumake.quant.search.decisions import decisions
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target


def handover(
    original_float: Graph,
    optimized_float: Graph,
    handover_sections: Sections,
    target: Target,
    sources: SourceFiles,
    vendor_document: VendorDocument | None,
    recipe: Recipe | None = None,
) -> Handover:
    if target.tool is None:
        message = f"there is no vendor tool for `{target.name}`"
        hint = "set it for other targets only: `targets: [{rdk-x5: {compile: ...}}]`"
        raise ProjectError(message, Route("compile.vendor_tool"), hint)
    tool = TOOLS[target.vendor]
    graphs = Graphs(original_float, optimized_float)
    request, sets = request_of(
        tool, handover_sections, target, graphs, sources, PREFIX, vendor_document, recipe
    )
    for message in complete_document(tool, request).omissions:
        tell(f"{tool.config} cannot express `{message}`")
    return Handover(partial(files, tool, request, sources, sets))


def handover_sections(
    model: ModelSection,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    calibration: Calibration,
    quantization: Quantization,
    compile: Compile,
    security: Security,
    target: Target,
    custom_operators: Sequence[CodeFiles] = (),
) -> Sections:
    """The sections that go to the vendor's tool. The parameters are inputs of the stage."""
    return Sections(
        model=model,
        targets=(target.name,),
        inputs=inputs,
        data=data,
        calibration=calibration,
        quantization=quantization,
        compile=compile,
        security=security,
        custom_operators=tuple(custom_operators),
    )


class Graphs(NamedTuple):
    """The model as trained, and optimized."""

    trained: Graph
    optimized: Graph


def request_of(
    tool: ClosedTool,
    sections: Sections,
    target: Target,
    graphs: Graphs,
    sources: SourceFiles,
    prefix: str,
    vendor_document: VendorDocument | None,
    recipe: Recipe | None = None,
) -> tuple[HandoverRequest, Sequence[InputSamples]]:
    """The request to the tool, and the samples of its package.

    `vendor_document` counts if it has the tool's dialect, `recipe` after a search. Raises
    ProjectError.
    """
    inputs = model_inputs(graphs.trained, sections.inputs)
    has_samples = bool(sections.data) and sections.calibration.method not in NO_SAMPLES
    tiles = tiling(graphs.trained)
    sets = input_samples(inputs, sections.data, sources, tiles) if has_samples else []
    model, weights = model_names(tool, sources, sections.inputs)
    folders = sample_folders(inputs) if has_samples else None
    own = (
        vendor_document["document"]
        if vendor_document is not None and vendor_document["dialect"] == tool.dialect
        else None
    )
    trained = {str(node.name) for node in graphs.trained.nodes()}
    request = HandoverRequest(sections, target, inputs, prefix, model, weights, folders, own)
    options = (sections.calibration, sections.quantization)
    return replace(request, decisions=decisions(graphs.optimized, trained, *options, recipe)), sets
