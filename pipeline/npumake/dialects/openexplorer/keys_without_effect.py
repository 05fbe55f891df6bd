"""Keys of hb_mapper and hb_compile that other keys disable, by the tables of both tools."""

from __future__ import annotations

from collections.abc import Iterator

from npumake.dialects.openexplorer.node_requests import (
    UNITS,
    NodeRequests,
    inserted_name,
    request_node_info,
    request_units,
)
from npumake.dialects.openexplorer.translation import CALIBRATION
from npumake.dialects.vendor_yaml import VendorYaml
from npumake.project.vendor import Note

METHOD = f"{CALIBRATION}.calibration_type"


def calibration_notes(vendor: VendorYaml) -> Iterator[Note]:
    """Notes on keys of calibration_parameters and custom_op."""
    for key, message in _idle(vendor):
        name = key.partition(".")[2]
        if vendor.raw_value(key) is not None and vendor.value(key) != vendor.keys[key].default:
            yield Note(f"`{name}` is ignored: {message}", vendor.spot(key).value)


def unit_notes(vendor: VendorYaml) -> Iterator[Note]:
    """Notes on nodes that one key places on the CPU and a stronger key on the BPU, or vice
    versa."""
    requests = NodeRequests()
    request_units(vendor, requests)
    request_node_info(vendor, requests)
    names = {unit: name for name, unit in UNITS.items()}
    for node, unit, spot in requests.overridden:
        winner = names[requests.units[node][0]]
        message = (
            f"`{inserted_name(node)}` is not on the {names[unit]}: another key names the {winner}"
        )
        yield Note(message, spot.value)


def _idle(vendor: VendorYaml) -> Iterator[tuple[str, str]]:
    """The keys without effect, and the reason."""
    kind = vendor.text(METHOD)
    if kind != "max":
        yield f"{CALIBRATION}.max_percentile", "it applies to `calibration_type: max`"
    if kind not in ("kl", "max", "mix"):
        yield f"{CALIBRATION}.per_channel", "it applies to `calibration_type` kl, max or mix"
    if kind in ("skip", "load"):
        message = f"`calibration_type: {kind}` reads no samples"
        yield f"{CALIBRATION}.cal_data_dir", message
        yield f"{CALIBRATION}.cal_data_type", message
        yield f"{CALIBRATION}.preprocess_on", message
    if not vendor.items("custom_op.op_register_files"):
        yield "custom_op.custom_op_dir", "`op_register_files` names no file"
