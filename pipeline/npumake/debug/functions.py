"""The debugger's functions, with the names, parameters and results that D-Robotics and Horizon
document; plots are SVG files.

A calibrated model is a file, a graph or a `ModelUnderTest`. Calibrated data is a folder
`<input>/*.npy`, the samples file of a build, or feeds. Node names may be those of the calibrated
model, of the trained model, or of tensors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from npumake.cache.folders import make_folder
from npumake.cache.publish import replacing
from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.curves import averaged, curves
from npumake.debug.debug_feeds import Data, samples_for
from npumake.debug.metrics import metric
from npumake.debug.sensitivity import (
    ModelUnderTest,
    NodeType,
    groups_of,
    named,
    ranked,
    sensitivities,
)
from npumake.debug.svg import channels, distributions, lines
from npumake.debug.tensors import node_bars, tensor_boxes
from npumake.errors import ProjectError
from npumake.graph import Graph, parse
from npumake.graph.qdq import is_qdq
from npumake.project.files import model_bytes

Model = str | Path | Graph | ModelUnderTest
Names = str | Sequence[str]
Groups = Sequence[str] | Sequence[Sequence[str]]
NODE_KINDS = ("weight", "activation")
MIN_NAME_CHARACTERS = 16  # of a node's name, in narrow terminals
LOG = logging.getLogger("npumake.debug")


def get_sensitivity_of_nodes(
    model_or_file: Model,
    metrics: Names = "cosine-similarity",
    calibrated_data: Data | None = None,
    output_node: str | None = None,
    node_type: NodeType = "node",
    data_num: int | None = None,
    verbose: bool = False,
    interested_nodes: Names | None = None,
) -> dict[str, dict[str, str]]:
    """The output error when each node alone is quantized: {node: {metric: figure}}, worst first by
    the first metric. With `verbose` it is logged as INFO too.

    `interested_nodes` replaces `node_type`. Raises ProjectError for an unknown name or an invalid
    number, GraphError for a model that does not run.
    """
    model = model_under_test(model_or_file, calibrated_data, data_num)
    chosen = listed(metrics, "metrics")
    for name in chosen:
        metric(name)
    if interested_nodes is not None:
        groups, node_type = named(model, listed(interested_nodes)), "node"
    else:
        groups = groups_of(model, node_type)
    sums = sensitivities(model, groups, output_node)
    table = {
        name: {by: str(metric(by).figure(sums[name])) for by in chosen}
        for name in ranked(sums, chosen[0])
    }
    if verbose:
        LOG.info("%s", sensitivity_text(node_type, table))
    return table


def plot_acc_error(
    save_dir: str | Path,
    calibrated_data: Data | None,
    model_or_file: Model,
    quantize_node: Groups | str | None = None,
    non_quantize_node: Groups | str | None = None,
    metric: str = "cosine-similarity",
    average_mode: bool = False,
) -> Path:
    """Plot the cumulative error over the nodes: one curve per name of a list, or per list of names.

    Each curve quantizes only `quantize_node`, or everything except `non_quantize_node`. 'weight'
    and 'activation' stand for all of a kind. Raises ProjectError, GraphError.
    """
    if (quantize_node is None) == (non_quantize_node is None):
        raise ProjectError("give either quantize_node or non_quantize_node")
    model = model_under_test(model_or_file, calibrated_data)
    selection = quantize_node if quantize_node is not None else non_quantize_node
    groups = _groups(selection or (), is_partial=quantize_node is None)
    places = {
        name: _places(model, group, leave_out=quantize_node is None)
        for name, group in groups.items()
    }
    errors = curves(model, places, metric)
    if average_mode:
        errors = {name: averaged(curve) for name, curve in errors.items()}
    quantity = "quantized alone" if non_quantize_node is None else "left in float"
    title = f"cumulative {metric}, {quantity}" + (", averaged" if average_mode else "")
    return written(Path(save_dir), f"accumulate_error_{'_'.join(groups)}", lines(title, errors))


def plot_distribution(
    save_dir: str | Path,
    model_or_file: Model,
    calibrated_data: Data | None,
    nodes_list: Names,
) -> list[Path]:
    """Plot distributions: for a regular node its output in float and quantized, and the error; for
    an activation its values; for a weight its values before and after."""
    model = model_under_test(model_or_file, calibrated_data)
    plots = []
    for name in listed(nodes_list):
        panels, threshold = node_bars(model, spots(model, name), _is_regular(model, name))
        plots.append(written(Path(save_dir), name, distributions(name, panels, threshold)))
    return plots


def get_channelwise_data_distribution(
    save_dir: str | Path,
    model_or_file: Model,
    calibrated_data: Data | None,
    nodes_list: Names,
    axis: int | None = None,
) -> list[Path]:
    """Plot box plots per channel of the inputs of calibration nodes. The default `axis` is that of
    a weight's scales, else 0; for activations 1."""
    model = model_under_test(model_or_file, calibrated_data)
    return [
        written(Path(save_dir), node.name, channels(node.name, tensor_boxes(model, node, axis)))
        for name in listed(nodes_list)
        for node in spots(model, name)
    ]


def model_under_test(
    model: Model, data: Data | None = None, count: int | None = None
) -> ModelUnderTest:
    """The model with its data; probes run the first `count` samples. Raises ProjectError and
    GraphError."""
    if isinstance(model, ModelUnderTest):
        return _quantizing(_probing(model, count))
    if data is None:
        raise ProjectError("calibrated_data is missing")
    graph = model if isinstance(model, Graph) else _read(Path(model))
    return _quantizing(_probing(ModelUnderTest(graph, samples_for(data, graph)), count))


def _probing(model: ModelUnderTest, count: int | None) -> ModelUnderTest:
    """The model with `count` probed samples. Raises ProjectError if there are fewer."""
    if count is None:
        return model
    if not 1 <= count <= len(model.samples):
        raise ProjectError(f"data_num is {count}, but there are {len(model.samples)} samples")
    probes = model.cache if count == len(model.probed) else {}
    return replace(model, cache=probes, data_num=count)


def sensitivity_text(
    title: str, table: Mapping[str, Mapping[str, str]], within: int | None = None
) -> str:
    """The table as vendors' tools print it. `within` limits the characters per line: long names
    keep their end, which differs most."""
    columns = ["Node", *next(iter(table.values()), {})]
    rows = [columns, *([name, *figures.values()] for name, figures in table.items())]
    if within is not None:
        figures = (max(len(row[index]) for row in rows) + 2 for index in range(1, len(columns)))
        max_characters = max(MIN_NAME_CHARACTERS, within - sum(figures))
        rows = [[_shortened(name, max_characters), *others] for name, *others in rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    lines = ["  ".join(f"{t:<{w}}" for t, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    width = max(len(line) for line in lines)
    return "\n".join([f"{title:=^{width}}", lines[0], "-" * width, *lines[1:]])


def _shortened(name: str, max_characters: int) -> str:
    return name if len(name) <= max_characters else "..." + name[3 - max_characters :]


def _quantizing(model: ModelUnderTest) -> ModelUnderTest:
    if not model.nodes:
        hint = "the debugger needs a calibrated model, one with Q/DQ"
        raise ProjectError("nothing in this model is quantized", hint=hint)
    return model


def _read(path: Path) -> Graph:
    try:
        return parse(model_bytes(path), path.name)
    except OSError as error:
        raise ProjectError(f"cannot be read: {error.strerror}", str(path)) from error


def listed(names: Names, of: str = "nodes") -> list[str]:
    """The names as a list. Raises ProjectError for an empty list and for nested lists."""
    selected = [names] if isinstance(names, str) else list(names)
    if not selected:
        raise ProjectError(f"an empty list of {of}")
    if not all(isinstance(name, str) for name in selected):
        raise ProjectError(f"{of} are names, not lists of names", hint="[A,B]")
    return selected


def _groups(selection: Groups | str, is_partial: bool) -> dict[str, list[str]]:
    """Curve name -> the names that are quantized, or left in float, together. Raises
    ProjectError."""
    if isinstance(selection, str) or all(isinstance(item, str) for item in selection):
        groups = {name: [name] for name in listed(selection)}  # type: ignore[arg-type]
    else:
        lists = [listed(item) for item in selection]
        groups = {f"partial_qmodel_{number}": group for number, group in enumerate(lists)}
    if not groups:
        raise ProjectError("an empty list of nodes")
    if is_partial and any(name in NODE_KINDS for group in groups.values() for name in group):
        raise ProjectError("weight and activation are for quantize_node, not non_quantize_node")
    return groups


def _places(model: ModelUnderTest, group: Sequence[str], leave_out: bool) -> list[CalibrationNode]:
    chosen = {node.name for node in model.nodes if node.kind in group}
    others = named(model, [name for name in group if name not in NODE_KINDS])
    chosen |= {name for names in others.values() for name in names}
    return [node for node in model.nodes if (node.name in chosen) != leave_out]


def spots(model: ModelUnderTest, name: str) -> list[CalibrationNode]:
    (names,) = named(model, [name]).values()
    return [node for node in model.nodes if node.name in names]


def _is_regular(model: ModelUnderTest, name: str) -> bool:
    nodes = model.calibrated.find(name)
    return any(not is_qdq(node) for node in nodes)


def written(folder: Path, name: str, svg: str) -> Path:
    """Write an SVG named after a node; special characters are replaced."""
    make_folder(folder)
    path = folder / (re.sub(r"[^\w.-]+", "_", name).strip(".")[-120:] + ".svg")
    with replacing(path) as temporary:
        temporary.write_text(svg, encoding="utf-8")
    return path
