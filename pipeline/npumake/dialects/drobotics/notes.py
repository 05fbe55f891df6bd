"""Notes on keys of hb_mapper's YAML that have no effect here, or no effect in hb_mapper either."""

from __future__ import annotations

from collections.abc import Iterator

from npumake.dialects.drobotics.keys import IGNORED, KEYS, NORMS
from npumake.dialects.drobotics.rules import NODE_TYPES, is_x3
from npumake.dialects.openexplorer.keys_without_effect import calibration_notes, unit_notes
from npumake.dialects.openexplorer.translation import INPUT
from npumake.dialects.vendor_yaml import VendorYaml, notes_of
from npumake.project.document import Document
from npumake.project.vendor import Note

CALIBRATION, COMPILER = "calibration_parameters", "compiler_parameters"


def notes(document: Document) -> tuple[Note, ...]:
    vendor = VendorYaml(document, KEYS)
    return (
        *notes_of(vendor, IGNORED),
        *unit_notes(vendor),
        *calibration_notes(vendor),
        *_input_notes(vendor),
        *_sample_notes(vendor),
        *_default_notes(vendor),
        *_type_notes(vendor),
    )


def _input_notes(vendor: VendorYaml) -> Iterator[Note]:
    runtime_types = vendor.items(f"{INPUT}.input_type_rt")
    space, layout = f"{INPUT}.input_space_and_range", f"{INPUT}.input_layout_rt"
    if "bt601_video" in vendor.items(space) and "nv12" not in runtime_types:
        message = "`input_space_and_range` is ignored: it applies to input_type_rt nv12"
        yield Note(message, vendor.spot(space).value)
    if vendor.raw_value(layout) is not None and "nv12" in runtime_types:
        message = "`input_layout_rt` is ignored for nv12, which has a fixed layout"
        yield Note(message, vendor.spot(layout).value)
    kinds = vendor.items(f"{INPUT}.norm_type") or ("no_preprocess",)
    for at, name in enumerate(("mean_value", "scale_value")):
        key = f"{INPUT}.{name}"
        values = vendor.items(key)
        idle = (value for value, kind in zip(values, kinds, strict=False) if not NORMS[kind][at])
        if any(value not in ("", "None") for value in idle):
            message = f"`{name}` is ignored: this `norm_type` does not use it"
            yield Note(message, vendor.spot(key).value)


def _sample_notes(vendor: VendorYaml) -> Iterator[Note]:
    key, folders = f"{CALIBRATION}.cal_data_type", f"{CALIBRATION}.cal_data_dir"
    kinds = vendor.items(key)
    if vendor.value(f"{CALIBRATION}.preprocess_on") and kinds:
        message = "`cal_data_type` is ignored: with `preprocess_on` image files are read"
        yield Note(message, vendor.spot(key).value)
    names = vendor.items(folders)
    for folder, kind in zip(names, kinds if len(kinds) > 1 else kinds * len(names), strict=False):
        if kind == "uint8" and folder.rstrip("/").endswith("_f32"):
            message = f"`cal_data_type: {kind}` overrides the name of `{folder}`"
            yield Note(message, vendor.spot(key).value)


def _default_notes(vendor: VendorYaml) -> Iterator[Note]:
    """Notes for absent keys that the guide requires and gives no default."""
    level, prefix = f"{COMPILER}.optimize_level", "model_parameters.output_model_file_prefix"
    for key in (level, prefix):
        if vendor.raw_value(key) is None:
            message = f"no `{key.partition('.')[2]}`: it is {vendor.text(key)} here"
            yield Note(message, vendor.spot(key).key)


def _type_notes(vendor: VendorYaml) -> Iterator[Note]:
    """The guide has both keys for RDK X5 and RDK Ultra; public files give them to RDK X3 too."""
    for key in NODE_TYPES if is_x3(vendor) else ():
        if "int16" in str(vendor.raw_value(key)):
            message = f"int16 of `{key.partition('.')[2]}` is ignored: RDK X3 has none"
            yield Note(message, vendor.spot(key).value)
