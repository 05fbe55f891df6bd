"""The form of the Ara2 Converter as a document: the one knob it has, and the files that Studio
hands it. What the metadata among them may hold is in `pipeline.detection.keys`."""

from __future__ import annotations

from pipeline.targets.vendor import Key

FORM = "form"  # the document is one flat group, called so here
CHIP = "ara240"
PREFIX = "model"  # the converter writes model.dvm

KEYS: dict[str, Key] = {
    f"{FORM}.model": Key(needed=True),
    f"{FORM}.int16_mode": Key(("int8", "int16_smart"), default="int8"),
    f"{FORM}.calibration": Key(),
    f"{FORM}.metadata": Key(),
    f"{FORM}.task": Key(),
    f"{FORM}.studio_server": Key(),
}

IGNORED: dict[str, str] = {
    f"{FORM}.studio_server": "no server is asked: the files lie here",
}
