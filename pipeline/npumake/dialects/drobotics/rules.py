"""hb_mapper's rules across keys: the limits of each board."""

from __future__ import annotations

from npumake.dialects.openexplorer.compiler_rules import check_balance
from npumake.dialects.openexplorer.translation import input_sources, whole
from npumake.dialects.vendor_yaml import VendorYaml

_X3 = "bernoulli2"
NODE_TYPES = ("model_parameters.node_info", "model_parameters.set_node_data_type")


def is_x3(vendor: VendorYaml) -> bool:
    """Whether the chip is the one without int16."""
    return vendor.text("model_parameters.march") == _X3


def check_rules(vendor: VendorYaml) -> None:
    """Raises the first ProjectError for a setting that the board of `march` does not support."""
    (_check_x3 if is_x3(vendor) else _check_later)(vendor)
    input_sources(vendor)
    check_balance(vendor)
    for key, low, high, other in (
        ("compiler_parameters.max_time_per_fc", 1000, 2**32 - 1, (0,)),
        ("compiler_parameters.jobs", 1, 4096, ()),
    ):
        if vendor.raw_value(key) is not None:
            whole(vendor, key, low, high, other)


def _check_x3(vendor: VendorYaml) -> None:
    if "int16" in vendor.text("calibration_parameters.optimization"):
        raise vendor.error("calibration_parameters.optimization", "RDK X3 has no int16")
    runtime_types = vendor.items("input_parameters.input_type_rt")
    layouts = vendor.items("input_parameters.input_layout_rt")
    if ("yuv444", "NCHW") in zip(runtime_types, layouts, strict=False):
        message = "RDK X3 takes no yuv444 in NCHW"
        raise vendor.error("input_parameters.input_layout_rt", message, "write NHWC")


def _check_later(vendor: VendorYaml) -> None:
    key = "compiler_parameters.core_num"
    if vendor.text(key) != "1":
        raise vendor.error(key, "`core_num: 2` is for RDK X3", "leave it out")
