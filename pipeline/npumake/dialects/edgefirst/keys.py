"""The keys of the Ara2 Converter's form: one option, and the files that Studio provides.

`npumake.detection.keys` lists the keys of the metadata among these files.
"""

from __future__ import annotations

from npumake.dialects.vendor_yaml import VendorKey

FORM = "form"  # our name for the single group of the flat document
CHIP = "ara240"
PREFIX = "model"  # the converter writes model.dvm

KEYS: dict[str, VendorKey] = {
    f"{FORM}.model": VendorKey(needed=True),
    f"{FORM}.int16_mode": VendorKey(("int8", "int16_smart"), default="int8"),
    f"{FORM}.calibration": VendorKey(),
    f"{FORM}.metadata": VendorKey(),
    f"{FORM}.task": VendorKey(),
    f"{FORM}.studio_server": VendorKey(),
}

IGNORED: dict[str, str] = {
    f"{FORM}.studio_server": "the files are local, so no server is contacted",
}
