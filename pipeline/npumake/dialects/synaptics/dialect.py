"""SyNAP's metafile → the native document.

    norm = (in - means) / scale = (x - mean) * (1 / scale)

The metafile names neither model nor chip: project.yaml has `model:` and `targets:`. An input takes
pixel values, 0..255. Images of a dataset are resized and padded with gray; .npy files hold
normalized values. Layer names are those of the model file. Source: the SyNAP guide, "Working With
Models".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import get_args

from npumake.dialects.native import NOISE_SAMPLES, Native
from npumake.dialects.synaptics.keys import (
    AUTO,
    DEFAULT_VALUES,
    IGNORED,
    METHODS,
    SCHEME_OF,
    InputEntry,
    OutputEntry,
)
from npumake.dialects.synaptics.metafile import read_metafile
from npumake.dialects.synaptics.rules import (
    EVERY,
    Meta,
    base_type,
    checked_metafile,
    delegate_type,
    delegates_of,
    layer_name,
    typed_metafile,
    types_of,
)
from npumake.digest import Json, plain
from npumake.project.document import Document, Route
from npumake.project.names import numbered
from npumake.project.sections import FINDING
from npumake.project.vendor import Dialect, Note

DOWNSTREAM = "..."
# suffix of a dataset's files → their content
KINDS = {**dict.fromkeys((".jpg", ".jpeg", ".png", ".bmp"), "picture"), ".npy": "array"}


def translate(document: Document, base: str = "", beside: Json = None) -> Document:
    """The native document. Raises the first ProjectError: a key, value or pair that SyNAP
    refuses."""
    meta, native = checked_metafile(document, beside), Native(document)
    for key, entries in (("inputs", meta.inputs), ("outputs", meta.outputs)):
        if names := [entry.name for entry in entries if entry.name is not None]:
            native.put(("model", key), list(names), meta.spot(key))
    if meta.outputs:
        native.put(("model", "output_count"), len(meta.outputs), meta.spot("outputs"))
    for index in range(len(meta.inputs)):
        site = _Site(meta, native, index)
        _put_input(site)
        _put_preprocess(site)
        if meta.datasets:
            _put_samples(site, base)
    _put_policies(meta, native)
    _put_quantization(meta, native)
    _put_delegates(meta, native)
    return native.document()


def notes(document: Document) -> tuple[Note, ...]:
    """Notes on keys of a metafile that have no effect here, or another effect."""
    meta = typed_metafile(document)
    entries = []
    for route in meta.document.places:
        key = ".".join(part for part in route if isinstance(part, str))
        value = _value(meta.document.data, route)
        if key in IGNORED and (value != DEFAULT_VALUES[key] if key in DEFAULT_VALUES else value):
            message = f"`{route[-1]}` is ignored: {IGNORED[key]}"
            entries.append(Note(message, meta.spot(*route).value))
    layout = meta.metafile.data_layout.lower()
    if layout != "default" and any(entry.has_preprocess for entry in meta.inputs):
        message = "`data_layout` has no effect: `preprocess` defines the layout of an input"
        entries.append(Note(message, meta.spot("data_layout").value))
    for name, value in delegates_of(meta).items():
        if delegate_type(value) == "gpu":
            message = "there is no GPU here: its layers run on the CPU, in float"
            entries.append(Note(message, meta.spot("delegate", name).value))
    return tuple(entries)


SYNAP = Dialect(translate, notes, read_metafile)


def _value(data: Json, route: Route) -> Json:
    for part in route:
        data = data[part]
    return data


@dataclass(frozen=True)
class _Site:
    """One model input: sets its native keys."""

    meta: Meta
    native: Native
    index: int

    @property
    def entry(self) -> InputEntry:
        return self.meta.inputs[self.index]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the format: a type, then attributes."""
        input_format = self.entry.format
        return tuple(
            (
                self.meta.metafile.input_format.lower() if input_format is None else input_format
            ).split()
        )

    @property
    def order(self) -> str:
        """The channel order of the training images."""
        return "bgr" if self.words[:1] == ("bgr",) else "rgb"

    def put(self, route: tuple[str, ...], value: Json, *at: str | int) -> None:
        """Sets `section.<input>.keys` for the route (section, *keys); errors point to `at`."""
        section, *keys = route
        alone = EVERY if len(self.meta.inputs) == 1 else numbered(self.index)
        name = self.entry.name or alone
        self.native.put((section, name, *keys), value, self.meta.spot(*at))

    def put_from_entry(self, key: str, value: Json, name: str) -> None:
        """Sets `inputs.<input>.key`; errors point to `name` in the input's entry."""
        self.put(("inputs", key), value, "inputs", self.index, name)


def _put_input(site: _Site) -> None:
    meta, entry = site.meta, site.entry
    site.put_from_entry("layout", meta.layout, "shape")
    fed_layout = meta.metafile.data_layout.upper()
    if fed_layout not in ("DEFAULT", meta.layout) and not entry.has_preprocess:
        site.put(("inputs", "fed_layout"), fed_layout, "data_layout")
    if entry.shape is not None:  # a compiled model has a batch of 1
        site.put_from_entry("shape", [1, *entry.shape[1:]], "shape")
    if entry.means is not None:
        site.put_from_entry("mean", plain(entry.means), "means")
    if entry.scale is not None:
        site.put_from_entry("scale", 1.0 / entry.scale, "scale")


def _put_preprocess(site: _Site) -> None:
    preprocess = site.entry.preprocess
    if preprocess is None or not site.entry.has_preprocess:
        return
    if preprocess.type not in ("gray", "float32"):
        site.put_from_entry("type", site.order, "format")
    values = {
        "type": preprocess.type,
        "size": plain(preprocess.size),
        "crop": preprocess.crop or None,
    }
    for key, value in values.items():
        if value is not None:
            at = ("inputs", site.index, "preprocess", key)
            site.put(("inputs", "preprocess", key), value, *at)


def _put_samples(site: _Site, base: str) -> None:
    """Sets `data:` from the dataset: noise, normalized arrays, or images."""
    meta, entry, pattern = site.meta, site.entry, site.meta.datasets[site.index]
    at = ("quantization", "dataset", site.index)
    if pattern == "random":
        site.put(("data", "random"), NOISE_SAMPLES, *at)
        return
    suffix = PurePosixPath(pattern).suffix.lower()
    kinds = {kind for file_suffix, kind in KINDS.items() if fnmatchcase(file_suffix, suffix)}
    if len(kinds) != 1:
        hint = "end it in .npy, .jpg or .png; a dataset cannot mix them"
        raise meta.error(at, f"`{pattern}` may be pictures or arrays", hint)
    site.put(("data", "files"), PurePosixPath(base, pattern).as_posix(), *at)
    site.put(("data", "warn"), list(get_args(FINDING)), *at)
    if kinds == {"array"}:
        if entry.means is not None or entry.scale is not None:
            site.put(("data", "normalized"), True, *at)
        return
    keeps_proportions = "keep_proportions=0" not in site.words
    step: Json = {"pad_resize": {}} if keeps_proportions else {"resize": {"mode": "opencv"}}
    site.put(("data", "channels"), _channels(site), *at)
    site.put(("data", "transforms"), [step], *at)


def _channels(site: _Site) -> str:
    preprocess, shape = site.entry.preprocess, site.entry.shape
    if preprocess is not None and preprocess.type == "gray":
        return "gray"
    if shape is None:
        return "bgr" if site.order == "bgr" else "auto"
    return "gray" if shape[-1 if site.meta.layout == "NHWC" else 1] == 1 else site.order


def _put_policies(meta: Meta, native: Native) -> None:
    """Sets the non-default security policies, by index, since an entry may have no name."""
    policies_by_role: dict[str, list[str]] = {
        "inputs": [entry.security for entry in (InputEntry(), *meta.inputs)],
        "outputs": [entry.security for entry in (OutputEntry(), *meta.outputs)],
    }
    for role, policies in policies_by_role.items():
        for index, policy in enumerate(policies[1:]):
            if policy != policies[0]:
                at = meta.spot(role, index, "security")
                native.put(("security", role, numbered(index)), policy, at)


def _put_quantization(meta: Meta, native: Native) -> None:
    quantization, types = meta.metafile.quantization, types_of(meta)
    if quantization is None or not meta.datasets:
        # Without samples SyNAP keeps the model's own scales, or uses float16.
        spot = meta.spot("quantization")
        native.put(("calibration", "method"), "load", spot)
        native.put(("quantization", "types"), {EVERY: "float16"}, spot)
        return
    algorithm = meta.spot("quantization", "algorithm")
    native.put(("calibration", "method"), METHODS[quantization.algorithm], algorithm)
    if quantization.algorithm == "auto":
        native.put(("calibration", "modelwise"), AUTO, algorithm)
    kind = base_type(types)
    rules = {EVERY: kind} | {layer_name(name): value for name, value in types.items()}
    ordered_types = [{name: value} for name, value in rules.items()]  # in the order of the rules
    native.put(("quantization", "types"), ordered_types, meta.spot("quantization", "data_type"))
    for name in types:
        index = list(rules).index(layer_name(name))
        at = meta.spot("quantization", "data_type", name)
        native.places["quantization", "types", index, layer_name(name)] = at
    scheme = SCHEME_OF.get(kind) if quantization.scheme == "default" else quantization.scheme
    if scheme:
        native.put(("quantization", "scheme"), scheme, meta.spot("quantization", "scheme"))
    if quantization.mode != "standard":
        native.put(("quantization", "mode"), quantization.mode, meta.spot("quantization", "mode"))


def _put_delegates(meta: Meta, native: Native) -> None:
    """Sets the unit of each layer. In a native document the more specific name wins, regardless of
    its position; so a rule for all layers behind one must not follow a rule for that layer."""
    units = {layer_name(name): _unit(value) for name, value in delegates_of(meta).items()}
    if "cpu" not in units.values():
        return
    for index, (name, unit) in enumerate(units.items()):
        for earlier in list(units)[:index] if name.endswith(DOWNSTREAM) else ():
            if units[earlier] != unit and earlier != EVERY and not earlier.endswith(DOWNSTREAM):
                message = f"`{name}` comes after `{earlier}`, which is for another unit"
                raise meta.error(("delegate", name), message, "name single layers last")
    for unit in ("cpu", "npu"):
        names = [name for name, on in units.items() if (name, on) != (EVERY, "npu") and on == unit]
        if names:
            native.put(("quantization", unit), names, meta.spot("delegate"))
            _place_delegates(meta, native, unit, names)


def _place_delegates(meta: Meta, native: Native, unit: str, names: Sequence[str]) -> None:
    for name in delegates_of(meta):
        if layer_name(name) in names:
            index = names.index(layer_name(name))
            native.places["quantization", unit, index] = meta.spot("delegate", name)


def _unit(delegate: str) -> str:
    return "cpu" if delegate_type(delegate) in ("cpu", "gpu") else "npu"
