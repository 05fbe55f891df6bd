"""runall: every function of the debugger in turn, on the nodes with the largest errors.

sensitivity  ──►  its worst TOP_NODES of each type  ──►  their distributions, and channel by channel
cumulative error with all weights quantized, and with all activations
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from npumake.cache.folders import make_folder
from npumake.cache.publish import replacing
from npumake.debug.debug_feeds import Data
from npumake.debug.functions import (
    Groups,
    Model,
    Names,
    get_channelwise_data_distribution,
    get_sensitivity_of_nodes,
    model_under_test,
    plot_acc_error,
    plot_distribution,
    sensitivity_text,
    spots,
)
from npumake.debug.sensitivity import ModelUnderTest, NodeType

TOP_NODES = 5
SAVE_DIR = "./debug_result/"


def runall(
    model_or_file: Model,
    calibrated_data: Data | None = None,
    save_dir: str | Path = SAVE_DIR,
    ns_metrics: Names = "cosine-similarity",
    output_node: str | None = None,
    node_type: NodeType | None = None,
    data_num: int | None = None,
    verbose: bool = False,
    interested_nodes: Names | None = None,
    dis_nodes_list: Names | None = None,
    cw_nodes_list: Names | None = None,
    axis: int | None = None,
    quantize_node: Groups | str | None = None,
    non_quantize_node: Groups | str | None = None,
    ae_metric: str = "cosine-similarity",
    average_mode: bool = False,
) -> dict[str, dict[str, dict[str, str]]]:
    """Sensitivities by node type, by default of weights and of activations; writes tables and plots
    to folders of `save_dir`. Raises ProjectError and GraphError."""
    model, folder = model_under_test(model_or_file, calibrated_data, data_num), Path(save_dir)
    tables = {
        kind: get_sensitivity_of_nodes(
            model, ns_metrics, None, output_node, kind, None, verbose, interested_nodes
        )
        for kind in _types(node_type, interested_nodes)
    }
    _write(folder / "node_sensitivity", tables)
    worst = _worst(model, tables.values())
    if plotted := worst if dis_nodes_list is None else dis_nodes_list:
        plot_distribution(folder / "data_distribution", model, None, plotted)
    save = folder / "channelwise_distribution"
    if boxed := worst if cw_nodes_list is None else cw_nodes_list:
        get_channelwise_data_distribution(save, model, None, boxed, axis)
    save = folder / "accumulate_error"
    for only, all_but in _accumulated(quantize_node, non_quantize_node):
        plot_acc_error(save, None, model, only, all_but, ae_metric, average_mode)
    return {str(kind): table for kind, table in tables.items()}


def _accumulated(
    only: Groups | str | None, all_but: Groups | str | None
) -> list[tuple[Groups | str | None, Groups | str | None]]:
    """The sets of nodes to plot, one plot each."""
    if only is None and all_but is None:
        return [(["weight", "activation"], None)]
    return [selection for selection in ((only, None), (None, all_but)) if selection != (None, None)]


def _types(node_type: NodeType | None, interested_nodes: Names | None) -> tuple[NodeType, ...]:
    if interested_nodes is not None:
        return ("node",)
    return ("weight", "activation") if node_type is None else (node_type,)


def _worst(model: ModelUnderTest, tables: Iterable[Mapping[str, object]]) -> list[str]:
    """The calibration nodes of the TOP_NODES first nodes of each table."""
    names = [name for table in tables for name in list(table)[:TOP_NODES]]
    return list(dict.fromkeys(node.name for name in names for node in spots(model, name)))


def _write(folder: Path, tables: Mapping[NodeType, Mapping[str, Mapping[str, str]]]) -> None:
    make_folder(folder)
    for kind, table in tables.items():
        with replacing(folder / f"sensitivity_of_{kind}.log") as temporary:
            temporary.write_text(sensitivity_text(kind, table) + "\n", encoding="utf-8")
