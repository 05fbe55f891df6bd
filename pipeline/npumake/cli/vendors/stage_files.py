"""The stage files of hb_mapper and hb_compile, in the format of their manuals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake.cache.folders import make_folder
from npumake.errors import ProjectError
from npumake.make.build import Build
from npumake.project.names import entries

if TYPE_CHECKING:
    from npumake.graph import Graph

Form = Callable[[str, "Graph"], "Graph"]
DUMP_FOLDER = "calibration_data"  # written by debug_mode
X3 = "rdk-x3"  # always reads images with channels last


def mapper_form(project_build: Build) -> Form:
    """hb_mapper's form: integer inputs in `quantized`, training inputs in all other stages."""
    from npumake.borders.documented import as_codes, as_trained

    def form(stage: str, graph: Graph) -> Graph:
        input_layouts = _input_layouts(project_build, graph)
        if stage != "quantized":
            return as_trained(
                graph,
                {name: (build, training) for name, (build, training, _) in input_layouts.items()},
            )
        return as_codes(
            graph, {name: (build, integer) for name, (build, _, integer) in input_layouts.items()}
        )

    return form


def compile_form(project_build: Build) -> Form:
    """hb_compile's form: training inputs in every stage."""
    from npumake.borders.documented import as_trained, as_turned

    def form(stage: str, graph: Graph) -> Graph:
        input_layouts = _input_layouts(project_build, graph)
        fed_and_training = {
            name: (entry.build, entry.training) for name, entry in input_layouts.items()
        }
        return (as_turned if stage == "quantized" else as_trained)(graph, fed_and_training)

    return form


def dump_calibration(project_build: Build, working: Path) -> None:
    """Writes `calibration_data/<input>/<number>.npy`, the inputs of the float stage files. Raises
    ProjectError for an input whose name is not a valid folder name."""
    import numpy as np

    from npumake.borders.documented import ORDERS
    from npumake.data.samples import Samples
    from npumake.graph import Graph

    artifacts = {node.stage: project_build.artifact(node) for node in project_build.plan.nodes}
    layouts = _input_layouts(project_build, Graph.load(artifacts["original_float"]))
    for index, feed in enumerate(Samples.load(artifacts["samples"])):
        for name, x in feed.items():
            if name in (".", "..") or PurePath(name).name != name:
                message = (
                    f"`{name}` is not a valid folder name, so `debug_mode` cannot dump its samples"
                )
                raise ProjectError(message, str(working), "leave `debug_mode` out")
            folder = working / DUMP_FOLDER / name
            make_folder(folder)
            order = ORDERS.get(layouts[name][:2]) if x.ndim == 4 else None
            np.save(folder / f"{index}.npy", x if order is None else x.transpose(order))


class Layouts(NamedTuple):
    """The layouts of one input: fed by a build, in training, and of its integer values."""

    build: str
    training: str
    integer: str


def _input_layouts(project_build: Build, graph: Graph) -> dict[str, Layouts]:
    """The layouts by input name."""
    (node,) = [node for node in project_build.plan.nodes if node.stage == "original_float"]
    sections: Mapping[str, Any] = node.params["inputs"]
    names = [str(value.name) for value in graph.inputs]
    x3 = any(node.target == X3 for node in project_build.plan.nodes)
    layouts = {}
    for name, key in entries(sections, names).items():
        section = sections[key]
        training_layout = section.get("layout") or "NCHW"
        fed_layout = section.get("fed_layout") or training_layout
        last = "NHWC" if x3 or section.get("fed_type") == "nv12" else fed_layout
        layouts[name] = Layouts(fed_layout, training_layout, last)
    return layouts
