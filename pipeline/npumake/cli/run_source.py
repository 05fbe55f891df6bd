"""The file that `npumake run` runs, and the colors of the pictures that it is fed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npumake.cli.selection import artifact_node, artifact_path

if TYPE_CHECKING:
    from npumake.bundle.secure import Keys
    from npumake.digest import Json
    from npumake.make.build import Build
    from npumake.make.node import Node

# `fed_type` of a project: the colors of a picture; the model is fed nv12 as yuv444.
FED_COLORS = {"rgb": "rgb", "bgr": "bgr", "gray": "gray", "yuv444": "yuv444", "nv12": "yuv444"}


class RunSource(NamedTuple):
    """`colors` is None if no project and no bundle says them. `note` says what runs instead."""

    path: Path
    colors: str | None
    is_built: bool
    note: str = ""


def source_of(name: str, model: str | None, keys: Keys | None) -> RunSource:
    """What a command line names: a file, or the compiled file of a project. Raises
    PipelineError."""
    path = artifact_path(name)
    owner = artifact_node(path)
    path, note = (path, "") if owner is None else _runnable(*owner, path)
    section = _bundle_section(path, model, keys)
    is_built = bool(section) or owner is not None
    if not section and owner is not None:
        section = _project_section(*owner)
    fed_type = section.get("fed_type") or section.get("type")
    return RunSource(path, FED_COLORS.get(str(fed_type)), is_built, note)


def _runnable(build: Build, node: Node, path: Path) -> tuple[Path, str]:
    """The quantized graph in place of a file that only an Ethos-U runs, and a note. A file that is
    not current stays: it may differ from the graph."""
    from npumake.runtime.litert import is_for_ethos_u

    if path.suffix != ".tflite" or "quantized" not in node.inputs:
        return path, ""
    if not is_for_ethos_u(path.read_bytes()):
        return path, ""
    quantized, states = build.plan.node(node.inputs["quantized"]), build.states()
    if {states[node.name].status, states[quantized.name].status} != {"current"}:
        return path, ""
    graph = build.artifact(quantized)
    return graph, f"only an Ethos-U runs {path.name}; {graph.name}, its quantized graph, runs here"


def _bundle_section(path: Path, model: str | None, keys: Keys | None) -> dict[str, Json]:
    """`inputs:` of a bundle's only input, by its record; empty without one."""
    from npumake.bundle.archive import INPUTS, Bundle
    from npumake.bundle.opening import opened_one

    if path.suffix != Bundle.suffix:
        return {}
    inputs = opened_one(path, model, keys).provenance.get(INPUTS)
    return _only(inputs)


def _project_section(build: Build, node: Node) -> dict[str, Json]:
    """`inputs:` of the only input of the project, or of the node's variant."""
    sections = {
        other.group: other.params.get("inputs")
        for other in build.plan.nodes
        if other.stage == "original_float"
    }
    return _only(sections.get(node.group, sections.get(build.plan.project)))


def _only(inputs: Json) -> dict[str, Json]:
    sections = [*inputs.values()] if isinstance(inputs, dict) else []
    is_one = len(sections) == 1 and isinstance(sections[0], dict)
    return sections[0] if is_one else {}
