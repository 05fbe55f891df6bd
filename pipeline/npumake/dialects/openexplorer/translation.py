"""The YAML of hb_mapper and hb_compile → the native document: the shared steps.

A `;` list has one item per model input, in the order of `input_name`.
"""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from npumake.dialects.native import Native
from npumake.dialects.openexplorer.node_removal import put_node_removal
from npumake.dialects.vendor_yaml import VendorYaml, refuse_missing
from npumake.digest import Json, plain
from npumake.project.compiling import Compile
from npumake.project.document import Document, parse_document
from npumake.project.scalar import older_meaning

MODEL, INPUT = "model_parameters", "input_parameters"
CALIBRATION = "calibration_parameters"
SOURCES = ("ddr", "pyramid", "resizer")

METHODS = {"default": "modelwise"}  # calibration_type → our method, if the names differ

ONE_METHOD = "`register` is the only value"


def input_names(vendor: VendorYaml, lists: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the inputs; `*` if the file names none, which allows one input.

    Raises ProjectError for a duplicate name, and for several values without names.
    """
    names = vendor.items("input_parameters.input_name")
    for name in names:
        if names.count(name) > 1:
            raise vendor.error("input_parameters.input_name", f"input `{name}` is written twice")
    for key in lists if not names else ():
        if len(vendor.items(key)) > 1:
            message = f"`{key.partition('.')[2]}` speaks of {len(vendor.items(key))} inputs"
            raise vendor.error(key, message, "name them in `input_name`, in the same order")
    return names or ("*",)


def per_input(vendor: VendorYaml, key: str, count: int) -> tuple[str, ...]:
    """One item per input; empty texts without a value. Raises ProjectError."""
    is_present = vendor.raw_value(key) is not None
    items = vendor.items(key) if is_present else (vendor.text(key),) * count
    if len(items) == count - 1 and vendor.text(key).endswith(";"):
        items = (*items, "")  # the last item is empty
    if len(items) != count:
        name = key.partition(".")[2]
        message = f"wrong number of `{name}`: given {len(items)}, the model has {count} inputs"
        raise vendor.error(key, message, "one value per input, divided by `;`")
    return items


@dataclass(frozen=True)
class InputSite:
    """One model input: reads its items of the vendor's lists and sets its native keys."""

    vendor: VendorYaml
    native: Native
    names: tuple[str, ...]
    index: int

    @property
    def name(self) -> str:
        return self.names[self.index]

    def item(self, key: str) -> str:
        """The item of this input, "" without a value. Raises ProjectError for a wrong number of
        items."""
        return per_input(self.vendor, key, len(self.names))[self.index]

    def shared(self, key: str) -> str:
        """As `item`, but a single item applies to every input."""
        items = self.vendor.items(key)
        return items[0] if len(items) == 1 else self.item(key)

    def put(self, section: str, name: str, value: Json, key: str) -> None:
        """Sets `section.<input>.name` in the native document; errors point to `key`."""
        self.native.put((section, self.name, name), value, self.vendor.spot(key))


class DialectSteps(NamedTuple):
    """The parts of a translation that differ between dialects: the chips by march, the steps of an
    input in order, the calibration method, and the requests per node."""

    chips: Mapping[str, str]
    inputs: tuple[Callable[[InputSite], object], ...]
    method: str
    node_requests: Callable[[VendorYaml, Native], None]


def native_document(
    document: Document, vendor: VendorYaml, names: tuple[str, ...], steps: DialectSteps
) -> Document:
    """The native document of a checked file. Raises the first ProjectError."""
    native = Native(document)
    put_model(vendor, native)
    put_target(vendor, native, steps.chips)
    for index in range(len(names)):
        site = InputSite(vendor, native, names, index)
        for put in steps.inputs:
            put(site)
    put_method(vendor, native, steps.method)
    put_compile(vendor, native)
    put_operators(vendor, native)
    steps.node_requests(vendor, native)
    return native.document()


def dimensions(vendor: VendorYaml, key: str, text: str) -> list[int]:
    """`1x3x224x224`, or `1 X 3 X 224 X 224`, → [1, 3, 224, 224]. Raises ProjectError."""
    sides = re.split(r"\s*[xX]\s*", text)
    if not all(re.fullmatch(r"[1-9][0-9]{0,8}", side) for side in sides):
        raise vendor.error(key, f"`{text}` is not a shape", "write it as 1x3x224x224")
    return [int(side) for side in sides]


def numbers(vendor: VendorYaml, key: str, text: str) -> Json:
    """`103.94 116.78 123.68` → one number, or a list of them. Raises ProjectError."""
    try:
        values = [float(word) for word in re.split(r"[,\s]+", text.strip(", \t"))]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        hint = "one number, or one per channel, divided by spaces"
        raise vendor.error(key, f"`{text}` is not a list of numbers", hint)
    return values[0] if len(values) == 1 else values


def whole(
    vendor: VendorYaml, key: str, lowest: int, highest: int, other: tuple[int, ...] = ()
) -> int:
    """A whole number in its range. Raises ProjectError."""
    text = vendor.text(key)
    if not re.fullmatch(r"[0-9]{1,12}", text) or not (
        lowest <= int(text) <= highest or int(text) in other
    ):
        also = "".join(f"{number} or " for number in other)
        message = f"`{key.partition('.')[2]}` must be {also}{lowest}..{highest}, not {text}"
        raise vendor.error(key, message)
    return int(text)


def folder_files(vendor: VendorYaml, folder: str, suffix: str = "") -> str:
    """The pattern of all files in a folder with `suffix`; the folder name is escaped."""
    return f"{glob.escape(vendor.path(folder))}/*{suffix}"


def put_model(vendor: VendorYaml, native: Native) -> None:
    """Sets `model:` and `compile:`. Raises ProjectError for no model, an incomplete Caffe model, or
    two models."""
    onnx, caffe = f"{MODEL}.onnx_model", f"{MODEL}.caffe_model"
    kinds = [key for key in (onnx, caffe) if vendor.raw_value(key)]
    half = f"{MODEL}.prototxt"
    if onnx in kinds and (len(kinds) == 2 or vendor.raw_value(half)):
        spot = caffe if len(kinds) == 2 else half
        raise vendor.error(spot, "both a Caffe and an ONNX model", "keep one of them")
    if onnx not in kinds:
        refuse_missing_model(
            vendor, "caffe" if kinds or vendor.raw_value(f"{MODEL}.prototxt") else ""
        )
    path = onnx if onnx in kinds else f"{MODEL}.prototxt"
    files = {"path": path} | ({} if onnx in kinds else {"weights": caffe})
    for name, key in files.items():
        file = vendor.path(vendor.text(key))
        pattern = glob.escape(file) if name == "weights" else file  # `weights` takes a pattern
        native.put(("model", name), pattern, vendor.spot(key))
    outputs = f"{MODEL}.output_nodes"
    if items := vendor.items(outputs):
        native.put(("model", "outputs"), list(items), vendor.spot(outputs))
    put_node_removal(vendor, native)
    prefix = f"{MODEL}.output_model_file_prefix"
    native.put(("compile", "prefix"), vendor.text(prefix), vendor.spot(prefix))


def put_compile(vendor: VendorYaml, native: Native) -> None:
    """Sets `compile:` from compiler_parameters; values equal to our defaults are left out."""
    for name, default in plain(Compile()).items():
        key = f"compiler_parameters.{name}"
        if key not in vendor.keys or vendor.value(key) is None:
            continue
        kind, value = vendor.keys[key].holds, vendor.value(key)
        if kind is int:
            value = int(vendor.text(key))
        elif kind is dict:
            value = input_sources(vendor)
        if value != default:
            native.put(("compile", name), value, vendor.spot(key))


def input_sources(vendor: VendorYaml) -> Json:
    """input_source by input, from a mapping or its text. Raises ProjectError."""
    key = "compiler_parameters.input_source"
    sources = vendor.raw_value(key)
    if isinstance(sources, str):
        sources = parse_document(sources.encode(), vendor.document.path, older_meaning).data
    if sources is None:
        return {}
    if not isinstance(sources, dict) or not all(item in SOURCES for item in sources.values()):
        hint = "write  {data: ddr}; allowed: " + ", ".join(SOURCES)
        raise vendor.error(key, "`input_source` must name a source per input", hint)
    return sources


def refuse_missing_model(vendor: VendorYaml, kind: str) -> None:
    """Raises ProjectError in the vendor's words if the keys of a model `kind` are missing."""
    needed = {"onnx": ("onnx_model",), "caffe": ("caffe_model", "prototxt")}
    keys = needed.get(kind, ("onnx_model",))
    refuse_missing(vendor, MODEL, [key for key in keys if not vendor.raw_value(f"{MODEL}.{key}")])


def put_target(vendor: VendorYaml, native: Native, chips: Mapping[str, str]) -> None:
    key = f"{MODEL}.march"
    native.put(("targets",), [chips[vendor.text(key)]], vendor.spot(key))


def put_types(site: InputSite, legal: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """Sets and returns the training type and the runtime type of an input.

    `legal` maps a training type to its runtime types. Raises ProjectError.
    """
    trained_key, fed_key = f"{INPUT}.input_type_train", f"{INPUT}.input_type_rt"
    training_type, runtime_type = site.item(trained_key), site.item(fed_key)
    if runtime_type not in legal[training_type]:
        message = f"a model trained on {training_type} cannot be fed {runtime_type}"
        hint = (
            f"trained on {training_type}, input_type_rt may be: {', '.join(legal[training_type])}"
        )
        raise site.vendor.error(fed_key, message, hint)
    site.put("inputs", "type", training_type, trained_key)
    site.put("inputs", "fed_type", runtime_type, fed_key)
    if runtime_type != "featuremap":
        site.put("inputs", "offset", 128, fed_key)
    return training_type, runtime_type


def put_batch(site: InputSite) -> None:
    """Sets the batch. Raises ProjectError if the model has several inputs or a batch already."""
    vendor, key = site.vendor, f"{INPUT}.input_batch"
    if vendor.raw_value(key) is None:
        return
    batch = whole(vendor, key, 1, 128)
    shape = site.native.data["inputs"][site.name].get("shape", [1])
    if batch > 1 and len(site.names) > 1:
        raise vendor.error(key, "`input_batch` is for models with one input")
    if batch > 1 and shape[0] != 1:
        raise vendor.error(key, "`input_batch` needs a first dimension of 1 in `input_shape`")
    site.put("inputs", "batch", batch, key)


def put_method(vendor: VendorYaml, native: Native, kind: str) -> None:
    """Sets `calibration:` for a calibration_type; max_percentile applies to `max` only."""
    key, percentile = f"{CALIBRATION}.calibration_type", f"{CALIBRATION}.max_percentile"
    share = numbers(vendor, percentile, vendor.text(percentile))
    if not isinstance(share, float) or not 0.5 <= share <= 1.0:
        raise vendor.error(percentile, f"`max_percentile` must be 0.5..1, not {share}")
    is_cut = kind == "max" and share < 1.0
    method = "max_percentile" if is_cut else METHODS.get(kind, kind)
    native.put(("calibration", "method"), method, vendor.spot(key))
    if is_cut:
        native.put(("calibration", "percentile"), share, vendor.spot(percentile))
    channels = f"{CALIBRATION}.per_channel"
    if vendor.value(channels) and kind in ("kl", "max", "mix"):  # the other methods ignore it
        native.put(("calibration", "per_channel"), True, vendor.spot(channels))


def put_operators(vendor: VendorYaml, native: Native) -> None:
    """Sets `custom_operators:` to the op_register_files in custom_op_dir."""
    key, folder = "custom_op.op_register_files", vendor.text("custom_op.custom_op_dir")
    files = [glob.escape(vendor.path(f"{folder or '.'}/{file}")) for file in vendor.items(key)]
    if files:
        native.put(("custom_operators",), files, vendor.spot(key))
