"""hb_compile's YAML → the native document.

    (pixel - mean_value) * scale_value, scale_value = 1 / std_value

The calibration files of hb_compile are .npy and hold what the float model is fed, mean and scale
already applied: the opposite of hb_mapper, so they are `normalized` here. Relative paths start at
the YAML file. Source: the OpenExplorer 3.x tables of hb_compile.
"""

from __future__ import annotations

from npumake.dialects.horizon.config_file import read_config
from npumake.dialects.horizon.keys import FED_LAYOUTS, KEYS, LEGAL, MARCHES, OPEN_GROUPS
from npumake.dialects.horizon.notes import notes
from npumake.dialects.horizon.precision import put_precision
from npumake.dialects.horizon.rules import check_rules, check_shape
from npumake.dialects.native import RANDOM, Native
from npumake.dialects.openexplorer.node_requests import (
    NodeRequests,
    wish_node_info,
    wish_optimization,
    wish_units,
)
from npumake.dialects.openexplorer.translation import (
    CALIBRATION,
    INPUT,
    InputSite,
    Ways,
    dimensions,
    folder_files,
    input_names,
    numbers,
    put_batch,
    put_types,
    translated,
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
    """Raises the first ProjectError: a key, value or pair that hb_compile refuses."""
    vendor = VendorYaml(document, KEYS, base)
    check_keys(vendor, ("model_parameters",), OPEN_GROUPS)
    names = input_names(vendor, LISTS)
    check_rules(vendor)
    steps = (_put_input, _put_norm, put_batch, _put_samples)
    return translated(document, vendor, names, Ways(MARCHES, steps, _kind(vendor), _put_wishes))


HB_COMPILE = Dialect(translate, notes, read_config)


def _put_wishes(vendor: VendorYaml, native: Native) -> None:
    """What is said node by node, from the weakest key to the strongest."""
    wishes = NodeRequests()
    wish_optimization(vendor, native, wishes)
    put_precision(vendor, native, wishes)
    wish_units(vendor, wishes)
    wish_node_info(vendor, wishes)
    wishes.put(native)


def _kind(vendor: VendorYaml) -> str:
    """calibration_type; without a folder there is nothing but `skip`, or scales to load."""
    kind = vendor.text(METHOD)
    return kind if vendor.items(FOLDERS) or kind == "load" else "skip"


def _put_input(site: InputSite) -> None:
    trained, fed = put_types(site, LEGAL)
    layout = site.item(f"{INPUT}.input_layout_train")
    if not layout and trained != "featuremap":
        refuse_missing(site.vendor, INPUT, ["input_layout_train"])
    if layout:
        site.put("inputs", "layout", layout, f"{INPUT}.input_layout_train")
    if fed not in ("featuremap", "nv12"):
        site.put("inputs", "fed_layout", FED_LAYOUTS[fed], f"{INPUT}.input_type_rt")
    _put_space(site, fed)
    key = f"{INPUT}.input_shape"
    if text := site.item(key):
        shape = dimensions(site.vendor, key, text)
        check_shape(site.vendor, shape, layout, fed)
        site.put("inputs", "shape", shape, key)


def _put_space(site: InputSite, fed: str) -> None:
    space = f"{INPUT}.input_space_and_range"
    if site.shared(space) == "bt601_video":
        if fed != "nv12":
            raise site.vendor.error(space, "`bt601_video` is for nv12", "leave it out")
        site.put("inputs", "color_range", "video", space)


def _put_norm(site: InputSite) -> None:
    """mean_value, and scale_value or std_value; `None` is for no such step."""
    mean, scale, std = VALUES
    given = {key: site.item(key) for key in VALUES if site.item(key) not in ("", "None")}
    for key in given:
        if site.item(f"{INPUT}.input_type_train") == "featuremap":
            message = f"`{key.partition('.')[2]}` for a feature map"
            raise site.vendor.error(key, message, "it is for pictures: write None for this input")
    if scale in given and std in given:
        raise site.vendor.error(std, "both `scale_value` and `std_value`", "keep one of them")
    if mean in given:
        site.put("inputs", "mean", numbers(site.vendor, mean, given[mean]), mean)
    if scale in given:
        site.put("inputs", "scale", numbers(site.vendor, scale, given[scale]), scale)
    if std in given:
        _put_inverse(site, std, numbers(site.vendor, std, given[std]))


def _put_inverse(site: InputSite, key: str, found: float | list[float]) -> None:
    values = found if isinstance(found, list) else [found]
    if 0.0 in values:
        raise site.vendor.error(key, "`std_value` cannot be 0: a pixel is divided by it")
    inverse = [1.0 / value for value in values]
    site.put("inputs", "scale", inverse if isinstance(found, list) else inverse[0], key)


def _put_samples(site: InputSite) -> None:
    vendor = site.vendor
    if _kind(vendor) == "skip":
        site.put("data", "random", RANDOM, METHOD)
        return
    if not vendor.items(FOLDERS):
        return
    site.put("data", "files", folder_files(vendor, site.item(FOLDERS), ".npy"), FOLDERS)
    site.put("data", "allow", ["few"], FOLDERS)  # the tool takes a single sample
    if site.item(f"{INPUT}.input_type_train") == "featuremap":
        site.put("data", "dtype", "float32", FOLDERS)  # of uint8 they are converted
    if {"mean", "scale"} & set(site.native.data["inputs"][site.name]):
        site.put("data", "normalized", True, FOLDERS)
