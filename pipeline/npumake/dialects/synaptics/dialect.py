"""SyNAP's metafile → the native document.

    norm = (in - means) / scale = (x - mean) * (1 / scale)

The metafile names neither model nor chip: they stand beside it, `model:` and `targets:` of the
project. An input is fed the values of its images, 0..255; pictures of a dataset are resized to it
between gray bands, .npy files of one hold normalised values. Layers are those of the model file.
Source: the SyNAP guide, "Working With Models".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import get_args

from npumake.dialects.native import RANDOM, Native
from npumake.dialects.synaptics.keys import (
    AUTO,
    IGNORED,
    METHODS,
    SCHEME_OF,
    USUAL,
    InputEntry,
    OutputEntry,
)
from npumake.dialects.synaptics.metafile import read_metafile
from npumake.dialects.synaptics.rules import (
    EVERY,
    Meta,
    base_type,
    checked,
    delegate_type,
    delegates_of,
    layer_name,
    typed,
    types_of,
)
from npumake.digest import Json, plain
from npumake.project.document import Document, Route
from npumake.project.names import numbered
from npumake.project.sections import FINDING
from npumake.project.vendor import Dialect, Note

BEHIND = "..."
# Suffixes of a dataset's files, and what they hold.
KINDS = {**dict.fromkeys((".jpg", ".jpeg", ".png", ".bmp"), "picture"), ".npy": "array"}


def translate(document: Document, base: str = "", beside: Json = None) -> Document:
    """Raises the first ProjectError: a key, value or pair that SyNAP refuses."""
    meta, native = checked(document, beside), Native(document)
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
    """What a valid metafile says that has no effect here, or another effect than with SyNAP."""
    meta = typed(document)
    found = []
    for route in meta.document.places:
        key = ".".join(part for part in route if isinstance(part, str))
        value = _value(meta.document.data, route)
        if key in IGNORED and (value != USUAL[key] if key in USUAL else value):
            message = f"`{route[-1]}` is ignored: {IGNORED[key]}"
            found.append(Note(message, meta.spot(*route).value))
    layout = meta.said.data_layout.lower()
    if layout != "default" and any(entry.has_preprocess for entry in meta.inputs):
        message = (
            "`data_layout` has no effect on an input with `preprocess`, which says how it is fed"
        )
        found.append(Note(message, meta.spot("data_layout").value))
    for name, value in delegates_of(meta).items():
        if delegate_type(value) == "gpu":
            message = "there is no GPU here: what it would compute is float, on the CPU"
            found.append(Note(message, meta.spot("delegate", name).value))
    return tuple(found)


SYNAP = Dialect(translate, notes, read_metafile)


def _value(data: Json, route: Route) -> Json:
    for part in route:
        data = data[part]
    return data


@dataclass(frozen=True)
class _Site:
    """One input of the model, and where its native keys go."""

    meta: Meta
    native: Native
    index: int

    @property
    def entry(self) -> InputEntry:
        return self.meta.inputs[self.index]

    @property
    def words(self) -> tuple[str, ...]:
        """The format: a type, then attributes."""
        said = self.entry.format
        return tuple((self.meta.said.input_format.lower() if said is None else said).split())

    @property
    def order(self) -> str:
        """Of the colours the model was trained on."""
        return "bgr" if self.words[:1] == ("bgr",) else "rgb"

    def put(self, route: tuple[str, ...], value: Json, *at: str | int) -> None:
        """`section.<input>.keys` for the `route` section, keys; placed where `at` is written."""
        section, *keys = route
        alone = EVERY if len(self.meta.inputs) == 1 else numbered(self.index)
        name = self.entry.name or alone
        self.native.put((section, name, *keys), value, self.meta.spot(*at))

    def given(self, key: str, value: Json, name: str) -> None:
        """`inputs.<input>.key`, placed where the input's own entry has `name`."""
        self.put(("inputs", key), value, "inputs", self.index, name)


def _put_input(site: _Site) -> None:
    meta, entry = site.meta, site.entry
    site.given("layout", meta.layout, "shape")
    fed = meta.said.data_layout.upper()
    if fed not in ("DEFAULT", meta.layout) and not entry.has_preprocess:
        site.put(("inputs", "fed_layout"), fed, "data_layout")
    if entry.shape is not None:  # a compiled model takes one sample
        site.given("shape", [1, *entry.shape[1:]], "shape")
    if entry.means is not None:
        site.given("mean", plain(entry.means), "means")
    if entry.scale is not None:
        site.given("scale", 1.0 / entry.scale, "scale")


def _put_preprocess(site: _Site) -> None:
    said = site.entry.preprocess
    if said is None or not site.entry.has_preprocess:
        return
    if said.type not in ("gray", "float32"):
        site.given("type", site.order, "format")
    found = {"type": said.type, "size": plain(said.size), "crop": said.crop or None}
    for key, value in found.items():
        if value is not None:
            at = ("inputs", site.index, "preprocess", key)
            site.put(("inputs", "preprocess", key), value, *at)


def _put_samples(site: _Site, base: str) -> None:
    """The dataset of the input: noise, normalised arrays, or pictures."""
    meta, entry, pattern = site.meta, site.entry, site.meta.datasets[site.index]
    at = ("quantization", "dataset", site.index)
    if pattern == "random":
        site.put(("data", "random"), RANDOM, *at)
        return
    suffix = PurePosixPath(pattern).suffix.lower()
    kinds = {kind for known, kind in KINDS.items() if fnmatchcase(known, suffix)}
    if len(kinds) != 1:
        hint = "end it in .npy, .jpg or .png; a dataset cannot mix them"
        raise meta.error(at, f"`{pattern}` does not say whether it is pictures", hint)
    site.put(("data", "files"), PurePosixPath(base, pattern).as_posix(), *at)
    site.put(("data", "warn"), list(get_args(FINDING)), *at)
    if kinds == {"array"}:
        if entry.means is not None or entry.scale is not None:
            site.put(("data", "normalized"), True, *at)
        return
    keeps = "keep_proportions=0" not in site.words
    step: Json = {"pad_resize": {}} if keeps else {"resize": {"mode": "opencv"}}
    site.put(("data", "channels"), _channels(site), *at)
    site.put(("data", "transforms"), [step], *at)


def _channels(site: _Site) -> str:
    said, shape = site.entry.preprocess, site.entry.shape
    if said is not None and said.type == "gray":
        return "gray"
    if shape is None:
        return "bgr" if site.order == "bgr" else "auto"
    return "gray" if shape[-1 if site.meta.layout == "NHWC" else 1] == 1 else site.order


def _put_policies(meta: Meta, native: Native) -> None:
    """Those that are not the usual ones; by number, since entries may go without names."""
    said: dict[str, list[str]] = {
        "inputs": [one.security for one in (InputEntry(), *meta.inputs)],
        "outputs": [one.security for one in (OutputEntry(), *meta.outputs)],
    }
    for role, policies in said.items():
        for index, policy in enumerate(policies[1:]):
            if policy != policies[0]:
                at = meta.spot(role, index, "security")
                native.put(("security", role, numbered(index)), policy, at)


def _put_quantization(meta: Meta, native: Native) -> None:
    said, types = meta.said.quantization, types_of(meta)
    if said is None or not meta.datasets:
        # Without samples SyNAP takes the model as it is: with the scales it brings, or in float16.
        spot = meta.spot("quantization")
        native.put(("calibration", "method"), "load", spot)
        native.put(("quantization", "types"), {EVERY: "float16"}, spot)
        return
    algorithm = meta.spot("quantization", "algorithm")
    native.put(("calibration", "method"), METHODS[said.algorithm], algorithm)
    if said.algorithm == "auto":
        native.put(("calibration", "modelwise"), AUTO, algorithm)
    kind = base_type(types)
    rules = {EVERY: kind} | {layer_name(name): type_ for name, type_ in types.items()}
    found = [{name: type_} for name, type_ in rules.items()]  # in the order of the rules
    native.put(("quantization", "types"), found, meta.spot("quantization", "data_type"))
    for name in types:
        index = list(rules).index(layer_name(name))
        at = meta.spot("quantization", "data_type", name)
        native.places["quantization", "types", index, layer_name(name)] = at
    scheme = SCHEME_OF.get(kind) if said.scheme == "default" else said.scheme
    if scheme:
        native.put(("quantization", "scheme"), scheme, meta.spot("quantization", "scheme"))
    if said.mode != "standard":
        native.put(("quantization", "mode"), said.mode, meta.spot("quantization", "mode"))


def _put_delegates(meta: Meta, native: Native) -> None:
    """Who runs what. Natively the name that says more wins, whatever its place; so that a rule
    for all that follows a layer must not come after that layer's own."""
    units = {layer_name(name): _unit(value) for name, value in delegates_of(meta).items()}
    if "cpu" not in units.values():
        return
    for index, (name, unit) in enumerate(units.items()):
        for earlier in list(units)[:index] if name.endswith(BEHIND) else ():
            if units[earlier] != unit and earlier != EVERY and not earlier.endswith(BEHIND):
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
