"""The form of the Ara2 Converter as a document: the one knob it has, and the files that Studio
hands it. What the metadata among them may hold is in `npumake.detection.keys`."""

from __future__ import annotations

from npumake.dialects.vendor_yaml import VendorKey

FORM = "form"  # the document is one flat group, called so here
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
    f"{FORM}.studio_server": "no server is asked: the files lie here",
}
