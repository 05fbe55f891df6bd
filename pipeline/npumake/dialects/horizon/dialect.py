"""hb_compile's YAML → the native document.

    (pixel - mean_value) * scale_value, scale_value = 1 / std_value

The calibration files of hb_compile are .npy with mean and scale already applied, unlike those of
hb_mapper; so they are `normalized` here. Relative paths start at the folder of the YAML file.
Source: the OpenExplorer 3.x tables of hb_compile.
"""

from __future__ import annotations

from npumake.dialects.horizon.config_file import read_config
from npumake.dialects.horizon.keys import FED_LAYOUTS, KEYS, LEGAL, MARCHES, OPEN_GROUPS
from npumake.dialects.horizon.notes import notes
from npumake.dialects.horizon.precision import put_precision
from npumake.dialects.horizon.rules import check_rules, check_shape
from npumake.dialects.native import NOISE_SAMPLES, Native
from npumake.dialects.openexplorer.node_requests import (
    NodeRequests,
    request_node_info,
    request_optimization,
    request_units,
)
from npumake.dialects.openexplorer.translation import (
    CALIBRATION,
    INPUT,
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
from npumake.project.vendor import Dialect

METHOD, FOLDERS = f"{CALIBRATION}.calibration_type", f"{CALIBRATION}.cal_data_dir"
VALUES = tuple(f"{INPUT}.{name}_value" for name in ("mean", "scale", "std"))
# Every list with one item per input, in the order of input_name.
LISTS = (
    *(f"{INPUT}.input_{name}" for name in ("type_train", "layout_train", "type_rt", "shape")),
    *VALUES,
    FOLDERS,
)


def translate(document: Document, base: str = "", _beside: Json = None) -> Document:
    """The native document. Raises the first ProjectError: a key, value or pair that hb_compile
    refuses."""
    vendor = VendorYaml(document, KEYS, base)
    check_keys(vendor, ("model_parameters",), OPEN_GROUPS)
    names = input_names(vendor, LISTS)
    check_rules(vendor)
    steps = (_put_input, _put_norm, put_batch, _put_samples)
    return native_document(
        document, vendor, names, DialectSteps(MARCHES, steps, _kind(vendor), _put_node_requests)
    )


HB_COMPILE = Dialect(translate, notes, read_config)


def _put_node_requests(vendor: VendorYaml, native: Native) -> None:
    """Sets the requests per node, from the weakest key to the strongest."""
    requests = NodeRequests()
    request_optimization(vendor, native, requests)
    put_precision(vendor, native, requests)
    request_units(vendor, requests)
    request_node_info(vendor, requests)
    requests.put(native)


def _kind(vendor: VendorYaml) -> str:
    """calibration_type; without a sample folder it is `skip`, unless scales are loaded."""
    kind = vendor.text(METHOD)
    return kind if vendor.items(FOLDERS) or kind == "load" else "skip"


def _put_input(site: InputSite) -> None:
    training_type, runtime_type = put_types(site, LEGAL)
    layout = site.item(f"{INPUT}.input_layout_train")
    if not layout and training_type != "featuremap":
        refuse_missing(site.vendor, INPUT, ["input_layout_train"])
    if layout:
        site.put("inputs", "layout", layout, f"{INPUT}.input_layout_train")
    if runtime_type not in ("featuremap", "nv12"):
        site.put("inputs", "fed_layout", FED_LAYOUTS[runtime_type], f"{INPUT}.input_type_rt")
    _put_space(site, runtime_type)
    key = f"{INPUT}.input_shape"
    if text := site.item(key):
        shape = dimensions(site.vendor, key, text)
        check_shape(site.vendor, shape, layout, runtime_type)
        site.put("inputs", "shape", shape, key)


def _put_space(site: InputSite, runtime_type: str) -> None:
    space = f"{INPUT}.input_space_and_range"
    if site.shared(space) == "bt601_video":
        if runtime_type != "nv12":
            raise site.vendor.error(space, "`bt601_video` is for nv12", "leave it out")
        site.put("inputs", "color_range", "video", space)


def _put_norm(site: InputSite) -> None:
    """mean_value, and scale_value or std_value; `None` skips a step."""
    mean, scale, std = VALUES
    values = {key: site.item(key) for key in VALUES if site.item(key) not in ("", "None")}
    for key in values:
        if site.item(f"{INPUT}.input_type_train") == "featuremap":
            message = f"`{key.partition('.')[2]}` for a feature map"
            raise site.vendor.error(key, message, "it is for pictures: write None for this input")
    if scale in values and std in values:
        raise site.vendor.error(std, "both `scale_value` and `std_value`", "keep one of them")
    if mean in values:
        site.put("inputs", "mean", numbers(site.vendor, mean, values[mean]), mean)
    if scale in values:
        site.put("inputs", "scale", numbers(site.vendor, scale, values[scale]), scale)
    if std in values:
        _put_inverse(site, std, numbers(site.vendor, std, values[std]))


def _put_inverse(site: InputSite, key: str, std: float | list[float]) -> None:
    values = std if isinstance(std, list) else [std]
    if 0.0 in values:
        raise site.vendor.error(key, "`std_value` cannot be 0: a pixel is divided by it")
    inverse = [1.0 / value for value in values]
    site.put("inputs", "scale", inverse if isinstance(std, list) else inverse[0], key)


def _put_samples(site: InputSite) -> None:
    vendor = site.vendor
    if _kind(vendor) == "skip":
        site.put("data", "random", NOISE_SAMPLES, METHOD)
        return
    if not vendor.items(FOLDERS):
        return
    site.put("data", "files", folder_files(vendor, site.item(FOLDERS), ".npy"), FOLDERS)
    site.put("data", "allow", ["few"], FOLDERS)  # the tool takes a single sample
    if site.item(f"{INPUT}.input_type_train") == "featuremap":
        site.put("data", "dtype", "float32", FOLDERS)  # uint8 files are converted
    if {"mean", "scale"} & set(site.native.data["inputs"][site.name]):
        site.put("data", "normalized", True, FOLDERS)
