"""Notes on keys of hb_compile's YAML that have no effect here, or another effect."""

from __future__ import annotations

from collections.abc import Iterator

from npumake.dialects.horizon.activation import activation_notes
from npumake.dialects.horizon.keys import IGNORED, KEYS, OPEN_GROUPS, PLANNED_AS
from npumake.dialects.horizon.precision import precision_notes
from npumake.dialects.openexplorer.keys_without_effect import METHOD, calibration_notes, unit_notes
from npumake.dialects.openexplorer.translation import CALIBRATION
from npumake.dialects.vendor_yaml import VendorYaml, notes_of, type_notes, unknown_notes
from npumake.project.document import Document
from npumake.project.vendor import Note


def notes(document: Document) -> tuple[Note, ...]:
    vendor = VendorYaml(document, KEYS)
    return (
        *notes_of(vendor, IGNORED),
        *unit_notes(vendor),
        *unknown_notes(vendor, OPEN_GROUPS),
        *type_notes(vendor),
        *_march_notes(vendor),
        *precision_notes(vendor),
        *activation_notes(vendor),
        *(calibration_notes(vendor) if _is_calibrated(vendor) else _noise_notes(vendor)),
    )


def _is_calibrated(vendor: VendorYaml) -> bool:
    return bool(vendor.items(f"{CALIBRATION}.cal_data_dir")) or vendor.text(METHOD) == "load"


def _noise_notes(vendor: VendorYaml) -> Iterator[Note]:
    message = "no `cal_data_dir`: calibrated on noise, for timing and not for accuracy"
    yield Note(message, vendor.spot(METHOD).value)


def _march_notes(vendor: VendorYaml) -> Iterator[Note]:
    key = "model_parameters.march"
    march = vendor.text(key)
    if march in PLANNED_AS:
        message = f"`{march}` has no public figures: it is planned as {PLANNED_AS[march]}"
        yield Note(message, vendor.spot(key).value)
