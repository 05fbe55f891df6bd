"""The native document → quant_config of hb_compile, for settings without another key.

model_config    activation {asymmetric, num_bin, the lists of a search}, modelwise_search,
                weight {bias_correction}
node_config     {conv1: {qtype: float16}}
"""

from __future__ import annotations

from npumake.dialects.handover import HandoverRequest
from npumake.digest import Json
from npumake.project.sections import Calibration, Modelwise


def quant_config(request: HandoverRequest) -> dict[str, Json]:
    """quant_config; empty if the other keys express all settings."""
    calibration = request.calibration
    activation = {**_grids(calibration, request.target.activations.symmetric), **_bins(calibration)}
    model: dict[str, Json] = {}
    if calibration.method == "modelwise" and calibration.modelwise != Modelwise():
        activation |= _lists(calibration.modelwise)
        stops = calibration.modelwise
        model["modelwise_search"] = {"similarity": stops.similarity, "metric": stops.metric}
    if activation:
        model["activation"] = activation
    if _is_corrected(request):
        model["weight"] = {"bias_correction": {}}
    nodes = _floats(request)
    return {
        **({"model_config": model} if model else {}),
        **({"node_config": nodes} if nodes else {}),
    }


def _grids(calibration: Calibration, default: bool) -> dict[str, Json]:
    if calibration.symmetric in (None, default) or calibration.method == "modelwise":
        return {}
    return {"asymmetric": not calibration.symmetric}


def _bins(calibration: Calibration) -> dict[str, Json]:
    if calibration.method != "kl" or calibration.bins == Calibration().bins:
        return {}
    return {"num_bin": calibration.bins}


def _lists(search: Modelwise) -> dict[str, Json]:
    asymmetric = {"asymmetric": list(search.asymmetric)} if search.asymmetric else {}
    return {
        "calibration_type": list(search.methods),
        "max_percentile": list(search.percentiles),
        "per_channel": list(search.per_channel),
        **asymmetric,
    }


def _is_corrected(request: HandoverRequest) -> bool:
    switches = request.decisions.extra_switches if request.decisions else ()
    return bool(request.sections.quantization.bias_correction) or "bias_correction" in switches


def _floats(request: HandoverRequest) -> dict[str, Json]:
    """The types of the float nodes."""
    decisions = request.decisions.nodes if request.decisions else {}
    return {name: {"qtype": node.whole} for name, node in decisions.items() if node.whole}
