"""hb_mapper's YAML → the native document.

    ((pixel - 128) + 128 - mean_value) * scale_value = (x + offset - mean) * scale

The calibration files of hb_mapper hold values of `input_type_train` before mean and scale, as raw
numbers in the layout of the model. Relative paths start at the folder of the YAML file.
Source: the D-Robotics PTQ guide and its operator list, reference of horizon_nn 1.1.
"""

from __future__ import annotations

from npumake.dialects.drobotics.keys import GROUPS, KEYS, LEGAL, MARCHES, NORMS
from npumake.dialects.drobotics.notes import notes
from npumake.dialects.drobotics.rules import check_rules, is_x3
from npumake.dialects.native import NOISE_SAMPLES, Native
from npumake.dialects.openexplorer.node_requests import (
    NodeRequests,
    node_types,
    request_node_info,
    request_optimization,
    request_units,
)
from npumake.dialects.openexplorer.translation import (
    CALIBRATION,
    INPUT,
    MODEL,
    DialectSteps,
    InputSite,
    dimensions,
    folder_files,
    input_names,
    native_document,
    numbers,
    put_batch,
    put_types,
)
from npumake.dialects.vendor_yaml import VendorYaml, check_keys, refuse_missing
from npumake.digest import Json
from npumake.project.document import Document
from npumake.project.vendor import Dialect, lenient_config

METHOD = f"{CALIBRATION}.calibration_type"
# Every list with one item per input, in the order of input_name.
LISTS = (
    *(f"{INPUT}.input_{name}" for name in ("type_train", "layout_train", "type_rt", "layout_rt")),
    *(f"{INPUT}.input_{name}" for name in ("shape", "space_and_range")),
    *(f"{INPUT}.{name}" for name in ("norm_type", "mean_value", "scale_value")),
    f"{CALIBRATION}.cal_data_dir",
)


def translate(document: Document, base: str = "", _beside: Json = None) -> Document:
    """The native document. Raises the first ProjectError: a key, value or pair that hb_mapper
    refuses."""
    vendor = VendorYaml(document, KEYS, base)
    check_keys(vendor, GROUPS)
    names = input_names(vendor, LISTS)
    check_rules(vendor)
    steps = (_put_input, _put_norm, put_batch, _put_samples)
    dialect_steps = DialectSteps(MARCHES, steps, vendor.text(METHOD), _put_node_requests)
    return native_document(document, vendor, names, dialect_steps)


HB_MAPPER = Dialect(translate, notes, lenient_config)


def _put_input(site: InputSite) -> None:
    _, runtime_type = put_types(site, LEGAL)
    layout, fed_layout = f"{INPUT}.input_layout_train", f"{INPUT}.input_layout_rt"
    site.put("inputs", "layout", site.item(layout), layout)
    if runtime_type != "nv12" and site.item(fed_layout):
        site.put("inputs", "fed_layout", site.item(fed_layout), fed_layout)
    space = f"{INPUT}.input_space_and_range"
    if runtime_type == "nv12" and site.shared(space) == "bt601_video":
        site.put("inputs", "color_range", "video", space)
    key = f"{INPUT}.input_shape"
    if text := site.item(key):
        shape = dimensions(site.vendor, key, text)
        _check_sides(site.vendor, shape, site.item(layout), runtime_type)
        site.put("inputs", "shape", shape, key)


def _put_norm(site: InputSite) -> None:
    """mean_value and scale_value, as norm_type selects them; `None` skips a step. A feature map
    needs no norm_type."""
    kind = site.item(f"{INPUT}.norm_type")
    if not kind and site.item(f"{INPUT}.input_type_train") != "featuremap":
        refuse_missing(site.vendor, INPUT, ["norm_type"])
    steps = NORMS[kind or "no_preprocess"]
    for is_used, name in zip(steps, ("mean", "scale"), strict=True):
        key = f"{INPUT}.{name}_value"
        if is_used and not site.item(key):
            refuse_missing(site.vendor, INPUT, [f"{name}_value"])
        if is_used and site.item(key) != "None":
            site.put("inputs", name, numbers(site.vendor, key, site.item(key)), key)


def _check_sides(vendor: VendorYaml, shape: list[int], layout: str, runtime_type: str) -> None:
    height = layout.index("H")
    sides = shape[height : height + 2]
    if runtime_type in ("nv12", "yuv444") and any(side % 2 for side in sides):
        message = f"a {runtime_type} picture of {' x '.join(map(str, sides))} has odd sides"
        hint = "its height and width must be even"
        raise vendor.error(f"{INPUT}.input_shape", message, hint)


def _put_samples(site: InputSite) -> None:
    vendor = site.vendor
    if vendor.value(METHOD) == "skip":
        site.put("data", "random", NOISE_SAMPLES, METHOD)
        return
    folders, kind = f"{CALIBRATION}.cal_data_dir", f"{CALIBRATION}.cal_data_type"
    if vendor.value(METHOD) == "load" and not vendor.items(folders):
        return
    if not vendor.items(folders):
        refuse_missing(vendor, CALIBRATION, ["cal_data_dir"])
    folder = site.item(folders)
    site.put("data", "files", folder_files(vendor, folder), folders)
    site.put("data", "allow", ["few"], folders)  # the tool takes a single sample
    if vendor.value(f"{CALIBRATION}.preprocess_on"):
        _put_pictures(site)
        return
    inferred = "float32" if folder.rstrip("/").endswith("_f32") else "uint8"
    dtype = site.shared(kind)
    site.put("data", "dtype", dtype or inferred, kind if dtype else folders)


def _put_node_requests(vendor: VendorYaml, native: Native) -> None:
    requests, types = NodeRequests(), f"{MODEL}.set_node_data_type"
    request_optimization(vendor, native, requests)
    request_units(vendor, requests)
    for node, type in node_types(vendor, types):
        requests.place(node, "output", type, vendor.spot(types))
        requests.allow_missing(node, vendor.spot(types))
    request_node_info(vendor, requests)
    if is_x3(vendor):
        requests.layers.clear()
    requests.put(native)


def _put_pictures(site: InputSite) -> None:
    """preprocess_on: reads image files and resizes them to the model's input, as scikit-image."""
    key = f"{CALIBRATION}.preprocess_on"
    section = site.native.data["inputs"][site.name]
    if section["type"] == "featuremap":
        raise site.vendor.error(key, "`preprocess_on` is for inputs that are pictures")
    is_yuv = section["type"] == "yuv444"
    steps: list[dict[str, object]] = [{"resize": {"mode": "skimage"}}]
    steps += [{"rgb2yuv444": {"data_format": "HWC"}}] if is_yuv else []
    steps += [{"hwc2chw": {}}] if section["layout"] == "NCHW" else []
    site.put("data", "channels", "rgb" if is_yuv else section["type"], key)
    site.put("data", "transforms", steps, key)
