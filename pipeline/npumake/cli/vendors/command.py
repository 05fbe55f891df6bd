"""A vendor's command, run: the project it lays out is built, and told of in the vendor's words.

What it makes lies under the vendor's names; the log and the screen have the same lines.
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
from npumake.cli.vendors.log import logged
from npumake.cli.vendors.project import RANDOM, build, laid_out, model_files, shapes, target_of
from npumake.cli.vendors.stage_files import Form
from npumake.make.build import Build
from npumake.make.node import Node

# stage → the name under which the vendors' tools leave it
FILES = {
    "original_float": "{prefix}_original_float_model.onnx",
    "optimized_float": "{prefix}_optimized_float_model.onnx",
    "calibrated": "{prefix}_calibrated_model.onnx",
    "quantized": "{prefix}_quantized_model.onnx",
    "compiled": "{prefix}.hybrid",
}
Write = Callable[[Path, Path], object]  # from an artifact to a file
CHECKED = ("original_float", "optimized_float", "calibrated", "quantized")


@dataclass(frozen=True)
class Tool:
    """How a vendor's tool tells of a build: lines of its log, which the screen shows too where
    `has_tables`, files beside the models, and the last line of a run that went well."""

    lines: Callable[[VendorBuild], Iterable[str]]
    files: Callable[[VendorBuild], Mapping[str, str]]
    last: str = ""
    has_tables: bool = True


HB_MAPPER = Tool(mapper_lines, mapper_files, "End Model Convert")
HB_COMPILE = Tool(compile_lines, compile_files, "The hb_compile completes running.")
SYNAP = Tool(synap_lines, lambda _: {}, has_tables=False)


@dataclass(frozen=True)
class Product:
    """What a command leaves in its `folder`, and what it says last of that."""

    tool: Tool
    folder: Path
    prefix: str
    remark: str
    log: Path
    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    skipped: tuple[str, ...] = ()
    form: Callable[[Build], Form] | None = None  # of its stage files, where the tool has another


def finished(folder: Path, product: Product) -> Build:
    """The project in `folder` built, and its artifacts under the vendor's names."""
    tool = product.tool
    found = _built(folder, lambda node: node.stage not in product.skipped, tool)
    made = [node for node in found.plan.nodes if node.stage not in product.skipped]
    form = product.form(found) if product.form else None
    for node in made:
        if node.stage in product.files:
            name = product.files[node.stage].format(prefix=product.prefix)
            write = _in_form(form, node.stage) if form else shutil.copyfile
            _written(found.artifact(node), product.folder / name, product.log, write)
    told = vendor_build(found, made, product.prefix)
    _tell(tool, told, product.folder, product.log)
    last = [product.remark.format(prefix=product.prefix), *filter(None, [tool.last])]
    for line in last:
        SCREEN.line(line)
    logged(product.log, *_below(told), *last)
    return found


def check(
    given: argparse.Namespace, marches: Mapping[str, str], folder: Path, log: Path, tool: Tool
) -> int:
    """What both tools' checkers do: the model built on noise in the hidden `folder`, where its
    nodes run, how fast, and the models of the stages."""
    target = target_of(given.march, marches)
    project = {
        "model": model_files(given.model, given.proto, folder),
        "inputs": shapes(given.input_shape),
        "data": {"*": {"random": RANDOM}},
        "calibration": {"method": "max"},
        "targets": [target],
    }
    laid_out(folder, project)
    _tell_placement(folder, target, log, tool)
    made = ("compiled", "comparison", *CHECKED)
    found = _built(folder, lambda node: node.stage in made, tool)
    nodes = [node for node in found.plan.nodes if node.stage in made]
    for node in nodes:
        if node.stage in CHECKED:
            _written(found.artifact(node), folder.parent / f"{node.stage}_model.onnx", log)
    _tell(tool, vendor_build(found, nodes, "", is_check=True), folder.parent, log)
    return 0


def _tell_placement(folder: Path, target: str, log: Path, tool: Tool) -> None:
    """Why nodes of the float model in `folder` are the CPU's, and what the tool refuses."""
    found = _built(folder, lambda node: node.stage == "optimized_float", tool)
    from npumake.cli.tables import placement_lines
    from npumake.debug.model_check import check_model
    from npumake.dialects.advice import GROUPS
    from npumake.graph import Graph
    from npumake.targets.reader import read_target

    (node,) = [node for node in found.plan.nodes if node.stage == "optimized_float"]
    result = check_model(Graph.load(found.artifact(node)), read_target(target))
    lines = placement_lines(result.in_words(GROUPS.text))
    for line in lines:
        SCREEN.line(line)
    logged(log, *lines)


def _built(folder: Path, wanted: Callable[[Node], bool], tool: Tool) -> Build:
    Reporter.draws_nodes = not tool.has_tables
    try:
        return build(folder, wanted)
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
    logged(log, f"Saving model to: {file}.")


def _tell(tool: Tool, told: VendorBuild, folder: Path, log: Path) -> None:
    """The lines on the screen and in the log, and the files beside the models."""
    lines = list(tool.lines(told))
    for line in lines if tool.has_tables else ():
        SCREEN.text(line)
    logged(log, *lines)
    for name, text in tool.files(told).items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _below(told: VendorBuild) -> list[str]:
    """What the screen has below the tables, for the log."""
    from npumake.cli.tables import guilty_lines

    if told.comparison is None:
        return []
    ran = told.check.lines if told.check else ()
    notes = (f"note: {note}" for note in (*told.comparison.notes, *ran))
    return [*guilty_lines(told.comparison), *notes]


def vendor_build(
    found: Build, made: Iterable[Node], prefix: str, is_check: bool = False
) -> VendorBuild:
    """What a build of one target says, as far as its nodes were `made`."""
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

    files = {node.stage: found.artifact(node) for node in made}
    (reading,) = read_project(found.directory, DIALECTS).targets.values()
    estimate = None
    if files.get("compiled", Path()).suffix == Bundle.suffix:
        bundle = opened_one(files["compiled"])
        estimate = estimate_bundle(NETWORK, bundle, read_target(bundle.target))
    return VendorBuild(
        prefix,
        reading.sections.calibration,
        Recipe.load(files["recipe"]) if "recipe" in files else None,
        Comparison.load(files["comparison"]) if "comparison" in files else None,
        estimate,
        CompiledCheck.load(files[CHECK]) if CHECK in files else None,
        is_check,
    )
