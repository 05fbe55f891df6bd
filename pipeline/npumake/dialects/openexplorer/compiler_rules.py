"""Rules of `compiler_parameters` that hb_mapper and hb_compile share."""

from __future__ import annotations

from npumake.dialects.openexplorer.translation import whole
from npumake.dialects.vendor_yaml import VendorYaml


def check_balance(vendor: VendorYaml) -> None:
    """Raises ProjectError for `compile_mode: balance` without a factor of 0..100."""
    mode, factor = (f"compiler_parameters.{key}" for key in ("compile_mode", "balance_factor"))
    if vendor.raw_value(factor) is not None:
        whole(vendor, factor, 0, 100)
    elif vendor.text(mode) == "balance":
        raise vendor.error(mode, "`compile_mode: balance` needs `balance_factor`", "0..100")
