"""remove_node_type and remove_node_name of hb_mapper and hb_compile → `compile:`.

Both remove nodes at the inputs and outputs of the compiled model; npumake.runtime.stripping does so
for a .hybrid.
"""

from __future__ import annotations

from npumake.dialects.native import Native
from npumake.dialects.vendor_yaml import VendorYaml

NATIVE_KEYS = {"remove_node_type": "remove_types", "remove_node_name": "remove_nodes"}


def put_node_removal(vendor: VendorYaml, native: Native) -> None:
    """Sets `compile.remove_types` and `compile.remove_nodes`."""
    for name, native_key in NATIVE_KEYS.items():
        key = f"model_parameters.{name}"
        if items := vendor.items(key):
            native.put(("compile", native_key), list(items), vendor.spot(key))
