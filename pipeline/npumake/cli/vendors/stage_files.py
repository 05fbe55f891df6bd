"""The stage files that hb_mapper and hb_compile leave, in the form that their manuals have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake.errors import ProjectError
from npumake.make.build import Build
from npumake.project.names import entries

if TYPE_CHECKING:
    from npumake.graph import Graph

Form = Callable[[str, "Graph"], "Graph"]
DUMPED = "calibration_data"  # of debug_mode
X3 = "rdk-x3"  # reads pictures with their channels last, whatever the file says


def mapper_form(found: Build) -> Form:
    """hb_mapper's: codes in `quantized`, and every other stage as trained."""
    from npumake.borders.documented import as_codes, as_trained

    def form(stage: str, graph: Graph) -> Graph:
        said = _pictures(found, graph)
        if stage != "quantized":
            return as_trained(
                graph, {name: (fed, trained) for name, (fed, trained, _) in said.items()}
            )
        return as_codes(graph, {name: (fed, last) for name, (fed, _, last) in said.items()})

    return form


def compile_form(found: Build) -> Form:
    """hb_compile's: every stage as trained."""
    from npumake.borders.documented import as_trained, as_turned

    def form(stage: str, graph: Graph) -> Graph:
        said = _pictures(found, graph)
        layouts = {name: (one.fed, one.trained) for name, one in said.items()}
        return (as_turned if stage == "quantized" else as_trained)(graph, layouts)

    return form


def dump_calibration(found: Build, working: Path) -> None:
    """`calibration_data/<input>/<number>.npy`, as the float stage files are fed. Raises
    ProjectError for an input whose name is none of a folder."""
    import numpy as np

    from npumake.borders.documented import ORDERS
    from npumake.data.samples import Samples
    from npumake.graph import Graph

    artifacts = {node.stage: found.artifact(node) for node in found.plan.nodes}
    said = _pictures(found, Graph.load(artifacts["original_float"]))
    for index, feed in enumerate(Samples.load(artifacts["samples"])):
        for name, x in feed.items():
            if name in (".", "..") or PurePath(name).name != name:
                message = (
                    f"`{name}` is no name of a folder, so `debug_mode` cannot dump its samples"
                )
                raise ProjectError(message, str(working), "leave `debug_mode` out")
            folder = working / DUMPED / name
            folder.mkdir(parents=True, exist_ok=True)
            order = ORDERS.get(said[name][:2]) if x.ndim == 4 else None
            np.save(folder / f"{index}.npy", x if order is None else x.transpose(order))


class Layouts(NamedTuple):
    """Of one input: as a build feeds it, as the model was trained, and as its codes are fed."""

    fed: str
    trained: str
    codes: str


def _pictures(found: Build, graph: Graph) -> dict[str, Layouts]:
    """By input."""
    (node,) = [node for node in found.plan.nodes if node.stage == "original_float"]
    said: Mapping[str, Any] = node.params["inputs"]
    names = [str(value.name) for value in graph.inputs]
    x3 = any(node.target == X3 for node in found.plan.nodes)
    layouts = {}
    for name, key in entries(said, names).items():
        one = said[key]
        trained = one.get("layout") or "NCHW"
        fed = one.get("fed_layout") or trained
        last = "NHWC" if x3 or one.get("fed_type") == "nv12" else fed
        layouts[name] = Layouts(fed, trained, last)
    return layouts
