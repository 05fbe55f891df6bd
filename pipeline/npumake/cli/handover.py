"""npumake handover: write a package for the vendor's own tool: YAML, model, samples, command

example:
  npumake handover digits:rdk-x5 --out handed
  npumake handover projects/digits --target rdk-x5 --out handed --run   # if hb_mapper is on PATH

hb_mapper for RDK, hb_compile for Nash, synap for SyNAP's chips; the Ara2 Converter has no command.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cache.folders import in_the_way
from npumake.errors import ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.data.input_samples import InputSamples
    from npumake.dialects.handover import ClosedTool, HandoverRequest
    from npumake.make.node import Node
    from npumake.project.files import SourceFiles
    from npumake.project.reader import ProjectReading
    from npumake.project.vendor import VendorDocument


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "project", nargs="?", default=".", metavar="PROJECT[:TARGET]", help="or its folder"
    )
    parser.add_argument("--target", metavar="CHIP", help="one of the project's")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--run", action="store_true", help="call the vendor's tool on it")


def run(arguments: argparse.Namespace) -> int:
    from npumake.compilers.handover_package import LIST, files, own_snapshot
    from npumake.compilers.vendor_tool import LOG, run_tool
    from npumake.dialects.handover import PRODUCTS
    from npumake.dialects.tools import complete_document

    _refuse_strangers_folder(arguments.out, LIST)
    tool, request, sources, sets = _request(arguments)
    snapshot = own_snapshot(tool, sets)
    request = replace(request, snapshot=snapshot and snapshot.name)
    omissions = complete_document(tool, request).omissions
    count = _write(arguments.out, files(tool, request, sources, sets, snapshot), omissions)
    print(f"handed over for {tool.name}: {count} files in {arguments.out}")
    for omission in omissions:
        print(f"note: {tool.config} cannot express `{omission}`")
    if not arguments.run:
        return 0
    command = tool.command(request.command_names)
    if not command:
        raise ProjectError(f"{tool.name} has no command to run", "--run", "see README.txt")
    product = arguments.out / PRODUCTS / tool.product.format(prefix=request.prefix)
    run_tool(command, arguments.out, product)
    print(f"{command[0]} made {product}; its output is in {arguments.out / LOG}")
    return 0


def _refuse_strangers_folder(out: Path, marker: str) -> None:
    """Raises ProjectError for a path that is neither empty nor an earlier hand-over."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ProjectError("not a folder", str(out), in_the_way(out) or "name another one")
    if out.is_dir() and any(out.iterdir()) and not (out / marker).is_file():
        raise ProjectError("a folder that holds something else", str(out), "name another one")


def _request(
    arguments: argparse.Namespace,
) -> tuple[ClosedTool, HandoverRequest, SourceFiles, Sequence[InputSamples]]:
    """The target's tool, its request, and the files to hand over. Raises PipelineError."""
    from npumake.cli.screen import SCREEN
    from npumake.cli.vendors.project import build
    from npumake.graph import Graph
    from npumake.quant.correction.corrections import is_searched
    from npumake.quant.search.recipe import Recipe
    from npumake.stages.handover import Graphs, request_of
    from npumake.targets.reader import read_target

    directory, chip = _place(arguments.project, arguments.target)
    reading, vendor_document, tool = _project(directory, chip)
    sections, target = reading.sections, read_target(chip)
    stages = ["original_float", "optimized_float", "samples"]
    if is_searched(sections.quantization, sections.calibration):
        stages.append("recipe")
    is_needed = partial(_is_needed, stages=stages, target=chip)
    with SCREEN.hushed():
        project_build = build(directory, is_needed)
    nodes = {node.stage: node for node in project_build.plan.nodes if is_needed(node)}
    sources = {
        **project_build.sources(nodes["original_float"]),
        **project_build.sources(nodes["samples"]),
    }
    trained, optimized = (Graph.load(project_build.artifact(nodes[name])) for name in stages[:2])
    recipe = Recipe.load(project_build.artifact(nodes["recipe"])) if "recipe" in nodes else None
    prefix = sections.compile.prefix or project_build.plan.project
    graphs = Graphs(trained, optimized)
    request, sets = request_of(
        tool, sections, target, graphs, sources, prefix, vendor_document, recipe
    )
    return tool, request, sources, sets


def _place(name: str, target: str | None) -> tuple[Path, str]:
    """The project's folder, and the target: of the name, of --target, or the only one. Raises
    ProjectError."""
    from npumake.cli.selection import selection

    named = selection(name)
    if named.group != named.build.plan.project:
        raise ProjectError(
            f"`{named.group}` is a variant", hint="a hand-over is of a whole project"
        )
    if target and named.target:
        raise ProjectError(f"`{name}` has a target", "--target", "leave one of them out")
    chip = target or named.target or str(named.only_node("calibrated").target)
    return named.build.directory, chip


def _is_needed(node: Node, stages: Collection[str], target: str) -> bool:
    """Whether the node is one of these stages, of the project itself and the target."""
    return node.stage in stages and node.variant is None and node.target in (None, target)


def _project(
    directory: Path, target: str
) -> tuple[ProjectReading, VendorDocument | None, ClosedTool]:
    """The project's sections for the target, the vendor's document of a project in a dialect, and
    the tool. Raises ProjectError."""
    from npumake.dialects.table import ALL_DIALECTS
    from npumake.dialects.tools import TOOLS
    from npumake.project.reader import read_project
    from npumake.targets.reader import read_target

    project = read_project(directory, ALL_DIALECTS)
    if target not in project.targets:
        hint = did_you_mean(target, project.targets)
        raise ProjectError(f"the project has no target `{target}`", "--target", hint)
    vendor = read_target(target).vendor
    if vendor not in TOOLS:
        message = f"`{target}` needs no hand-over: npumake compiles for it"
        raise ProjectError(message, "--target", f"npumake build {project.name}")
    return project.targets[target], project.vendor_document, TOOLS[vendor]


def _write(out: Path, files: Iterable[tuple[str, bytes]], omissions: Sequence[str]) -> int:
    """Writes the files and returns their number; the list of digests comes last. Replaces the
    samples of an earlier hand-over. Raises PipelineError."""
    from npumake import digest
    from npumake.cache.folders import make_folder
    from npumake.cache.publish import replacing
    from npumake.compilers.handover import SCRIPT
    from npumake.compilers.handover_package import LIST
    from npumake.dialects.handover import CALIBRATION

    make_folder(out)
    (out / LIST).unlink(missing_ok=True)
    if (out / CALIBRATION).is_dir():
        shutil.rmtree(out / CALIBRATION)
    digests = {}
    for name, data in files:
        if name in digests:
            message = f"two files of the hand-over are called `{name}`"
            raise ProjectError(message, str(out), "rename the model's weights")
        make_folder((out / name).parent)
        with replacing(out / name) as temporary:
            temporary.write_bytes(data)
        digests[name] = digest.of_bytes(data)
    if SCRIPT in digests:
        (out / SCRIPT).chmod(0o755)
    with replacing(out / LIST) as temporary:
        document = {
            "format": "npumake-handover",
            "version": 1,
            "sha256": digests,
            "not_said": list(omissions),
        }
        temporary.write_text(
            digest.text(document, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
    return len(digests)
