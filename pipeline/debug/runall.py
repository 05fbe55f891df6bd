"""runall: every function of the debugger, one after the other, on the nodes that matter most.

sensitivity  ──►  its worst TOP of each type  ──►  their distributions, and channel by channel
cumulative error of all weights quantized, and of all activations
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.cache.publish import replacing
from pipeline.debug.fed import Data
from pipeline.debug.functions import (
    Groups,
    Model,
    Names,
    examined,
    get_channelwise_data_distribution,
    get_sensitivity_of_nodes,
    listed,
    plot_acc_error,
    plot_distribution,
    sensitivity_text,
    spots,
)
from pipeline.debug.sensitivity import NodeType

TOP = 5
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
    """Gives the sensitivities by node type, and leaves tables and plots in folders of `save_dir`.
    By default of weights, then of activations. Raises ProjectError and GraphError."""
    patient, folder = examined(model_or_file, calibrated_data, data_num), Path(save_dir)
    types: Sequence[NodeType] = ("weight", "activation") if node_type is None else (node_type,)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for each in ("node",) if interested_nodes is not None else types:
        table = get_sensitivity_of_nodes(
            patient, ns_metrics, None, output_node, each, None, verbose, interested_nodes
        )
        found[each] = table
        _write(folder / "node_sensitivity" / f"sensitivity_of_{each}.log", each, table)
    worst = [name for table in found.values() for name in list(table)[:TOP]]
    calibration = [one.name for name in worst for one in spots(patient, name)]
    plotted = calibration if dis_nodes_list is None else listed(dis_nodes_list)
    plot_distribution(folder / "data_distribution", patient, None, plotted)
    boxed = calibration if cw_nodes_list is None else listed(cw_nodes_list)
    get_channelwise_data_distribution(
        folder / "channelwise_distribution", patient, None, boxed, axis
    )
    if quantize_node is None and non_quantize_node is None:
        quantize_node = ["weight", "activation"]
    for quantized, left in ((quantize_node, None), (None, non_quantize_node)):
        if quantized is not None or left is not None:
            place = folder / "accumulate_error"
            plot_acc_error(place, None, patient, quantized, left, ae_metric, average_mode)
    return found


def _write(file: Path, title: str, table: dict[str, dict[str, str]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as temporary:
        temporary.write_text(sensitivity_text(title, table) + "\n", encoding="utf-8")
