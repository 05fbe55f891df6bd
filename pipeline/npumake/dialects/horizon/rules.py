"""hb_compile's rules across keys: the limits of each march, and keys that exclude each other."""

from __future__ import annotations

from npumake.dialects.horizon.keys import LARGE_MARCHES
from npumake.dialects.openexplorer.compiler_rules import check_balance
from npumake.dialects.openexplorer.translation import input_sources, whole
from npumake.dialects.vendor_yaml import VendorYaml

_COMPILER = "compiler_parameters"


def check_rules(vendor: VendorYaml) -> None:
    """Raises the first ProjectError for a rule that the keys break."""
    _check_march(vendor)
    _check_numbers(vendor)
    batch, name = "input_parameters.separate_batch", "input_parameters.separate_name"
    if vendor.value(batch) and vendor.raw_value(name) is not None:
        raise vendor.error(name, "both `separate_batch` and `separate_name`", "keep one of them")
    input_sources(vendor)


def check_shape(vendor: VendorYaml, shape: list[int], layout: str, runtime_type: str) -> None:
    """Checks an image: four dimensions, one or three channels, even sides for nv12. Raises
    ProjectError."""
    if runtime_type == "featuremap":
        return
    key, channels = "input_parameters.input_shape", 1 if runtime_type == "gray" else 3
    if len(shape) != 4:
        raise vendor.error(key, f"a {runtime_type} picture has four dimensions, not {len(shape)}")
    if shape[layout.index("C")] != channels:
        message = f"{shape[layout.index('C')]} channels in {layout}"
        raise vendor.error(key, message, f"a {runtime_type} picture has {channels}")
    height = layout.index("H")
    if runtime_type == "nv12" and any(side % 2 for side in shape[height : height + 2]):
        raise vendor.error(key, "nv12 does not support odd sizes")


def max_cores(march: str) -> int:
    """The number of cores that one model can run on."""
    return 4 if march in LARGE_MARCHES else 1


def _check_march(vendor: VendorYaml) -> None:
    march = vendor.text("model_parameters.march")
    whole(vendor, f"{_COMPILER}.core_num", 1, max_cores(march))
    memory = f"{_COMPILER}.max_l2m_size"
    if vendor.value(memory) not in (0, "None") and march not in LARGE_MARCHES:
        raise vendor.error(memory, f"{march} does not support `max_l2m_size`", "leave it out")


def _check_numbers(vendor: VendorYaml) -> None:
    whole(vendor, f"{_COMPILER}.max_time_per_fc", 1000, 10_000_000, (0,))
    whole(vendor, f"{_COMPILER}.jobs", 1, 4096)
    check_balance(vendor)
