"""Runs a vendor's command: builds its project and reports in the vendor's format.

Artifacts get the vendor's file names. The log and the screen show the same lines.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npumake.cache.publish import replacing
from npumake.cli.reporter import CHECK, Reporter
from npumake.cli.screen import SCREEN
from npumake.cli.vendors.build_log import (
    VendorBuild,
    compile_files,
    compile_lines,
    mapper_files,
    mapper_lines,
    synap_lines,
)
from npumake.cli.vendors.log import append_log
from npumake.cli.vendors.project import (
    NOISE_SAMPLES,
    build,
    model_files,
    shapes,
    target_of,
    write_project,
)
from npumake.cli.vendors.stage_files import Form
from npumake.make.build import Build
from npumake.make.node import Node

# stage → file name of the vendors' tools
FILES = {
    "original_float": "{prefix}_original_float_model.onnx",
    "optimized_float": "{prefix}_optimized_float_model.onnx",
    "calibrated": "{prefix}_calibrated_model.onnx",
    "quantized": "{prefix}_quantized_model.onnx",
    "compiled": "{prefix}.hybrid",
}
Write = Callable[[Path, Path], object]  # (artifact, file) → writes the file
CHECKED_STAGES = ("original_float", "optimized_float", "calibrated", "quantized")


@dataclass(frozen=True)
class ToolOutput:
    """The output of a vendor's tool: log lines, files beside the models, and the last line of a
    successful run. With `has_tables` the screen shows the log lines too."""

    lines: Callable[[VendorBuild], Iterable[str]]
    files: Callable[[VendorBuild], Mapping[str, str]]
    last: str = ""
    has_tables: bool = True


HB_MAPPER = ToolOutput(mapper_lines, mapper_files, "End Model Convert")
HB_COMPILE = ToolOutput(compile_lines, compile_files, "The hb_compile completes running.")
SYNAP = ToolOutput(synap_lines, lambda _: {}, has_tables=False)


@dataclass(frozen=True)
class Product:
    """The files that a command writes to `folder`, and its closing `remark`."""

    tool: ToolOutput
    folder: Path
    prefix: str
    remark: str
    log: Path
    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    skipped: tuple[str, ...] = ()
    form: Callable[[Build], Form] | None = None  # conversion of stage files to the tool's format


def build_product(folder: Path, product: Product) -> Build:
    """Builds the project in `folder` and writes its artifacts under the vendor's names."""
    tool = product.tool
    project_build = _build(folder, lambda node: node.stage not in product.skipped, tool)
    nodes = [node for node in project_build.plan.nodes if node.stage not in product.skipped]
    form = product.form(project_build) if product.form else None
    for node in nodes:
        if node.stage in product.files:
            name = product.files[node.stage].format(prefix=product.prefix)
            write = _in_form(form, node.stage) if form else shutil.copyfile
            _written(project_build.artifact(node), product.folder / name, product.log, write)
    vendor_result = vendor_build(project_build, nodes, product.prefix)
    _report(tool, vendor_result, product.folder, product.log)
    last = [product.remark.format(prefix=product.prefix), *filter(None, [tool.last])]
    for line in last:
        SCREEN.line(line)
    append_log(product.log, *_notes_below(vendor_result), *last)
    return project_build


def check(
    arguments: argparse.Namespace,
    marches: Mapping[str, str],
    folder: Path,
    log: Path,
    tool: ToolOutput,
) -> int:
    """The checker of both tools: builds the model on noise in the hidden `folder`, reports the
    unit of each node and the speed, and writes the models of the stages."""
    target = target_of(arguments.march, marches)
    project = {
        "model": model_files(arguments.model, arguments.proto, folder),
        "inputs": shapes(arguments.input_shape),
        "data": {"*": {"random": NOISE_SAMPLES}},
        "calibration": {"method": "max"},
        "targets": [target],
    }
    write_project(folder, project)
    _report_placement(folder, target, log, tool)
    stages = ("compiled", "comparison", *CHECKED_STAGES)
    project_build = _build(folder, lambda node: node.stage in stages, tool)
    nodes = [node for node in project_build.plan.nodes if node.stage in stages]
    for node in nodes:
        if node.stage in CHECKED_STAGES:
            _written(project_build.artifact(node), folder.parent / f"{node.stage}_model.onnx", log)
    _report(tool, vendor_build(project_build, nodes, "", is_check=True), folder.parent, log)
    return 0


def _report_placement(folder: Path, target: str, log: Path, tool: ToolOutput) -> None:
    """Reports why nodes of the float model run on the CPU, and which nodes the tool refuses."""
    project_build = _build(folder, lambda node: node.stage == "optimized_float", tool)
    from npumake.cli.tables import placement_lines
    from npumake.debug.model_check import check_model
    from npumake.dialects.advice import GROUPS
    from npumake.graph import Graph
    from npumake.targets.reader import read_target

    (node,) = [node for node in project_build.plan.nodes if node.stage == "optimized_float"]
    result = check_model(Graph.load(project_build.artifact(node)), read_target(target))
    lines = placement_lines(result.in_words(GROUPS.text))
    for line in lines:
        SCREEN.line(line)
    append_log(log, *lines)


def _build(folder: Path, is_wanted: Callable[[Node], bool], tool: ToolOutput) -> Build:
    Reporter.draws_nodes = not tool.has_tables
    try:
        return build(folder, is_wanted)
    finally:
        Reporter.draws_nodes = True


def _in_form(form: Form, stage: str) -> Write:
    def write(artifact: Path, file: Path) -> None:
        from npumake.graph import Graph

        if artifact.suffix == Graph.suffix:
            form(stage, Graph.load(artifact)).save(file)
        else:
            shutil.copyfile(artifact, file)

    return write


def _written(artifact: Path, file: Path, log: Path, write: Write = shutil.copyfile) -> None:
    with replacing(file) as temporary:
        write(artifact, temporary)
    SCREEN.line(f"wrote     {file}")
    append_log(log, f"Saving model to: {file}.")


def _report(tool: ToolOutput, result: VendorBuild, folder: Path, log: Path) -> None:
    """Writes the lines to the screen and the log, and the files beside the models."""
    lines = list(tool.lines(result))
    for line in lines if tool.has_tables else ():
        SCREEN.text(line)
    append_log(log, *lines)
    for name, text in tool.files(result).items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _notes_below(result: VendorBuild) -> list[str]:
    """The lines that the screen shows below the tables, for the log."""
    from npumake.cli.tables import worst_node_lines

    if result.comparison is None:
        return []
    check_lines = result.check.lines if result.check else ()
    notes = (f"note: {note}" for note in (*result.comparison.notes, *check_lines))
    return [*worst_node_lines(result.comparison), *notes]


def vendor_build(
    project_build: Build, nodes: Iterable[Node], prefix: str, is_check: bool = False
) -> VendorBuild:
    """The results of one target's build, for the `nodes` that ran."""
    from npumake.bundle.archive import Bundle
    from npumake.bundle.opening import opened_one
    from npumake.cli.vendors.build_log import NETWORK
    from npumake.debug.compared import Comparison
    from npumake.debug.compiled_check import CompiledCheck
    from npumake.dialects.table import DIALECTS
    from npumake.perf.estimate import estimate_bundle
    from npumake.project.reader import read_project
    from npumake.quant.search.recipe import Recipe
    from npumake.targets.reader import read_target

    files = {node.stage: project_build.artifact(node) for node in nodes}
    (project,) = read_project(project_build.directory, DIALECTS).targets.values()
    estimate = None
    if files.get("compiled", Path()).suffix == Bundle.suffix:
        bundle = opened_one(files["compiled"])
        estimate = estimate_bundle(NETWORK, bundle, read_target(bundle.target))
    return VendorBuild(
        prefix,
        project.sections.calibration,
        Recipe.load(files["recipe"]) if "recipe" in files else None,
        Comparison.load(files["comparison"]) if "comparison" in files else None,
        estimate,
        CompiledCheck.load(files[CHECK]) if CHECK in files else None,
        is_check,
    )
