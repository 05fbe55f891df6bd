"""The Ara2 Converter's form → the native document.

    model: yolov8n-seg.onnx           int16_mode: int8 | int16_smart
    calibration: calibration-ds-1-0123456789abcdef.safetensors
    metadata: edgefirst.json          (else the ONNX model's own)

In both modes the trainer's split_hints define where the head is cut. int16_smart keeps the mask
coefficients and the arithmetic from distances to boxes in 16 bits; the converter's artifacts do the
same, though its page differs. Pixels are scaled by 1/255, as in every trainer of Studio. A snapshot
with another normalization is an error that names the key to write. Relative paths start at the
folder of the form. Source: the Ara2 Converter's page and its artifacts.
"""

from __future__ import annotations

from npumake.dialects.edgefirst.keys import CHIP, FORM, IGNORED, KEYS, PREFIX
from npumake.dialects.native import Native
from npumake.dialects.vendor_yaml import VendorYaml, check_keys, notes_of
from npumake.digest import Json
from npumake.project.document import Document, Route, RoutePlace
from npumake.project.vendor import Dialect, Note

# Share of the float model's mAP at .50 / .50:.95 on held-out images, in percent, max then kl:
#   shapes-detector, split   99.6 / 93.6   98.7 / 92.2
#   FastestDet               97.6 / 95.0   95.3 / 93.5
#   UltraFace                93.2 / 83.5   76.6 / 53.3
#   YuNet                    95.6 / 86.9   94.7 / 76.7
#   YOLOX (uneven channels)  59.7 / 43.1   88.5 / 83.9
# Studio selects the images with the largest activations for its snapshots, which suits max.
METHOD = "max"
SMART = "int16_smart"
WIDE = ("BOXES", "MASKS")  # 16-bit tensors of int16_smart
UNSIGNED = 1 / 255  # normalization of every trainer: 0..255 becomes 0..1


def translate(document: Document, base: str = "", _beside: Json = None) -> Document:
    """The native document. Raises the first ProjectError: an unknown key or mode, or no model."""
    vendor = _form(document, base)
    check_keys(vendor, (FORM,))
    native = Native(document)
    model, mode, files = (f"{FORM}.{key}" for key in ("model", "int16_mode", "calibration"))
    native.put(("model", "path"), vendor.path(vendor.text(model)), vendor.spot(model))
    native.put(("model", "split"), "hints", vendor.spot(model))
    if vendor.text(mode) == SMART:
        for name in WIDE:
            native.put(("quantization", "types", name), "int16", vendor.spot(mode))
    metadata = f"{FORM}.metadata"
    if vendor.raw_value(metadata) is not None:
        path = vendor.path(vendor.text(metadata))
        native.put(("model", "metadata"), path, vendor.spot(metadata))
    native.put(("calibration", "method"), METHOD, vendor.spot(model))
    native.put(("targets",), [CHIP], vendor.spot(model))
    native.put(("compile", "prefix"), PREFIX, vendor.spot(model))
    native.put(("inputs", "*", "scale"), UNSIGNED, vendor.spot(model))
    native.put(("inputs", "*", "offset"), 128, vendor.spot(model))
    task = f"{FORM}.task"
    if vendor.raw_value(task) is not None:
        native.put(("compile", "task"), vendor.text(task), vendor.spot(task))
    if vendor.raw_value(files) is not None:
        path = vendor.path(vendor.text(files))
        native.put(("data", "*", "snapshot"), path, vendor.spot(files))
    return native.document()


def notes(document: Document) -> tuple[Note, ...]:
    """Notes on the keys of a form that have no effect here."""
    return notes_of(_form(document, ""), IGNORED)


ARA2 = Dialect(translate, notes)


def _form(document: Document, base: str) -> VendorYaml:
    """The form as a vendor's document with a single group."""
    top = document.places[()]
    places: dict[Route, RoutePlace] = {(): top, (FORM,): top}
    places |= {(FORM, *route): spot for route, spot in document.places.items() if route}
    return VendorYaml(Document(document.path, {FORM: document.data}, places), KEYS, base)
