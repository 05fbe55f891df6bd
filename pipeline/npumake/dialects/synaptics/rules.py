"""What SyNAP asks of a metafile's keys together, with the model and the chips it is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from npumake.dialects.synaptics.keys import (
    CHANNELS_LAST,
    DELEGATES,
    SCHEMES,
    SECRETS,
    TYPES,
    InputEntry,
    Metafile,
    OutputEntry,
)
from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.project.check import check
from npumake.project.document import Document, Route, RoutePlace
from npumake.project.expand import routes
from npumake.project.reader import built
from npumake.project.schema import schema_of

EVERY, INPUTS = "*", "INPUTS"
SCHEMA = schema_of(Metafile, "SyNAP metafile")


@dataclass(frozen=True)
class Meta:
    """A metafile by its document, typed, and what it is for: a model file and chips."""

    document: Document
    said: Metafile
    suffix: str = ""  # of the model's file
    chips: tuple[str, ...] = ()

    @property
    def layout(self) -> str:
        """Where the model has its channels."""
        return "NHWC" if self.suffix in CHANNELS_LAST else "NCHW"

    @property
    def inputs(self) -> tuple[InputEntry, ...]:
        """One entry at least: a model has an input."""
        return tuple(entry or InputEntry() for entry in self.said.inputs) or (InputEntry(),)

    @property
    def outputs(self) -> tuple[OutputEntry, ...]:
        return tuple(entry or OutputEntry() for entry in self.said.outputs)

    @property
    def datasets(self) -> tuple[str, ...]:
        """One per input, or none: the model is then not quantized here."""
        found = self.said.quantization and self.said.quantization.dataset
        return (found,) if isinstance(found, str) else tuple(found or ())

    def spot(self, *route: str | int) -> RoutePlace:
        """Where the route is written, or the nearest above it that is."""
        ways: list[Route] = [route[:depth] for depth in range(len(route), -1, -1)]
        return next(self.document.places[way] for way in ways if way in self.document.places)

    def error(self, route: Route, what: str, hint: str = "") -> ProjectError:
        return ProjectError(what, self.spot(*route).value, hint)


def typed(document: Document) -> Meta:
    """The metafile in `document`. Raises the first ProjectError: an unknown key, or a value."""
    data = _without_blanks(document.data, SCHEMA)
    places = {route: document.places[route] for route in routes(data)}
    plain = Document(document.path, data, places)
    check(plain, SCHEMA)
    return Meta(plain, built(Metafile, plain.data))


def _without_blanks(data: Json, schema: Json) -> Json:
    """The data less every known key that has no value."""
    if isinstance(data, list):
        return [_without_blanks(item, schema.get("items", {})) for item in data]
    if not isinstance(data, dict):
        return data
    known = schema.get("properties", {})
    return {
        key: _without_blanks(item, known.get(key, {}))
        for key, item in data.items()
        if item is not None or key not in known
    }


def checked(document: Document, beside: Json) -> Meta:
    """The same, for the `model` and `targets` of the project `beside` it.

    Raises the first ProjectError, also for a rule that SyNAP has.
    """
    path, chips = _model_and_chips(beside if isinstance(beside, dict) else {})
    suffix = PurePosixPath(path).suffix.lower()
    meta = replace(typed(document), suffix=suffix, chips=chips)
    for rule in (_layout, _names, _shapes, _normalization, _quantization, _delegate, _security):
        rule(meta)
    return meta


def _model_and_chips(beside: Mapping[str, Json]) -> tuple[str, tuple[str, ...]]:
    """As far as they are there; the project's own check speaks of what is wrong with them."""
    model, targets = beside.get("model"), beside.get("targets")
    path = model.get("path") if isinstance(model, dict) else None
    listed = targets if isinstance(targets, list) else []
    chips = [next(iter(entry), "") if isinstance(entry, dict) else entry for entry in listed]
    return path if isinstance(path, str) else "", tuple(map(str, chips))


def _layout(meta: Meta) -> None:
    layout, key = meta.said.data_layout.lower(), ("data_layout",)
    if layout not in ("default", "nchw", "nhwc"):
        message = f"`data_layout` cannot be `{meta.said.data_layout}`"
        raise meta.error(key, message, "allowed: default, nchw, nhwc")
    if layout == "nhwc" and meta.layout == "NCHW":
        message = f"a model in {meta.suffix or 'ONNX'} cannot be made nhwc"
        raise meta.error(key, message, "leave `data_layout` out, or write default")


def _names(meta: Meta) -> None:
    groups: tuple[tuple[str, tuple[InputEntry | OutputEntry, ...]], ...] = (
        ("inputs", meta.inputs if meta.said.inputs else ()),
        ("outputs", meta.outputs),
    )
    for key, entries in groups:
        names = [entry.name for entry in entries]
        twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
        if twice:
            at = len(names) - 1 - names[::-1].index(twice[0])
            raise meta.error((key, at, "name"), f"`{twice[0]}` is written twice under `{key}`")
        if None in names and any(names):
            message = f"some of the {key} have a name and others have none"
            raise meta.error((key, names.index(None)), message, "name all of them, or none")
        if meta.suffix == ".pb" and not any(names):
            message = f"a .pb model does not tell its {key}"
            raise meta.error((key,), message, f"write `name` of each under `{key}:`")


def _shapes(meta: Meta) -> None:
    for index, entry in enumerate(meta.inputs):
        route = ("inputs", index)
        if entry.name is not None and entry.shape is None:
            raise meta.error(route, f"input `{entry.name}` has no `shape`", "a name needs one")
        if entry.name is None and entry.shape is not None and meta.suffix != ".prototxt":
            raise meta.error((*route, "shape"), "a `shape` without a `name`", "write both")
        if entry.shape is not None and len(entry.shape) < 2:
            message = f"a shape of {len(entry.shape)} dimension"
            raise meta.error((*route, "shape"), message, "the first one counts the samples")


def _normalization(meta: Meta) -> None:
    for index, entry in enumerate(meta.inputs):
        if entry.scale == 0.0:
            message = "`scale` cannot be 0: values are divided by it"
            raise meta.error(("inputs", index, "scale"), message)
        if isinstance(entry.means, tuple) and entry.shape is not None:
            channels = entry.shape[-1 if meta.layout == "NHWC" else 1]
            if len(entry.means) not in (1, channels):
                message = f"{len(entry.means)} `means` for {channels} channels"
                raise meta.error(("inputs", index, "means"), message)
    if meta.datasets and len(meta.datasets) != len(meta.inputs):
        message = f"{len(meta.datasets)} datasets for {len(meta.inputs)} inputs"
        hint = "one per input; an input of which nothing is said is an empty item of `inputs:`"
        raise meta.error(("quantization", "dataset"), message, hint)


def _quantization(meta: Meta) -> None:
    said = meta.said.quantization
    if said is None:
        return
    types = types_of(meta)
    for name, kind in types.items():
        route = ("quantization", "data_type", name)
        if kind not in TYPES:
            raise meta.error(route, f"unknown type `{kind}`", did_you_mean(kind, TYPES))
    if {"uint8", "int8"} <= set(types.values()):
        message = "uint8 and int8 in one model"
        raise meta.error(("quantization", "data_type"), message, "keep one of them")
    kind = base_type(types)
    if said.scheme != "default" and kind not in SCHEMES[said.scheme]:
        message = f"`{said.scheme}` is not for {kind}"
        hint = f"it is for {' and '.join(SCHEMES[said.scheme])}"
        raise meta.error(("quantization", "scheme"), message, hint)


def types_of(meta: Meta) -> Mapping[str, str]:
    """data_type as a map; empty where nothing is said."""
    said = meta.said.quantization
    kinds = said.data_type if said and said.data_type is not None else {}
    return {EVERY: kinds} if isinstance(kinds, str) else kinds


def base_type(types: Mapping[str, str]) -> str:
    """What a layer of which nothing is said is quantized to first: the type of 8 bits that comes
    up, else that of `*`, else uint8."""
    found = (kind for kind in ("int8", "uint8") if kind in types.values())
    return next(found, types.get(EVERY, "uint8"))


def _delegate(meta: Meta) -> None:
    for name, value in delegates_of(meta).items():
        kind, route = delegate_type(value), ("delegate", name)
        if kind not in ("default", "npu", "gpu", "cpu"):
            message = f"unknown delegate `{kind}`"
            raise meta.error(route, message, did_you_mean(kind, ("npu", "gpu", "cpu")))
        if name == INPUTS:
            message = "`INPUTS` has no delegate: an input is not computed"
            raise meta.error(route, message, "name layers")
        for chip in meta.chips:
            if kind != "default" and kind not in DELEGATES.get(chip, (kind,)):
                message = f"{chip} has no {kind}"
                raise meta.error(route, message, f"it has: {', '.join(DELEGATES[chip])}")

    kinds = {delegate_type(value) for value in delegates_of(meta).values()}
    if meta.datasets and kinds and kinds <= {"cpu", "gpu"} and EVERY in delegates_of(meta):
        message = "a dataset, though no layer is for the NPU: only the NPU is quantized for"
        raise meta.error(("quantization", "dataset"), message, "remove it, or `delegate`")


def delegates_of(meta: Meta) -> Mapping[str, str]:
    """delegate as a map."""
    said = meta.said.delegate
    return {EVERY: said} if isinstance(said, str) else said


def delegate_type(value: str) -> str:
    """What stands before the options of a delegate."""
    return (value.split() or ["default"])[0].lower()


def layer_delegates(document: Document) -> dict[str, str]:
    """Who is to run each layer, by the name that the native document has for it."""
    found = delegates_of(typed(document))
    return {layer_name(name): delegate_type(value) for name, value in found.items()}


def layer_name(name: str) -> str:
    """`@id` is a layer by the id it has in quantization_info.yaml, which here is its name."""
    return name.removeprefix("@")


def _security(meta: Meta) -> None:
    said = meta.said.security
    if said is None or not said.secure:
        return
    keys = [key for key in SECRETS if getattr(said, key) is not None]
    if said.file is not None and keys:
        message = f"both a security `file` and `{keys[0]}`"
        raise meta.error(("security", keys[0]), message, "keep one of them")
    if said.file is None and len(keys) < len(SECRETS):
        missing = ", ".join(f"`{key}`" for key in SECRETS if key not in keys)
        hint = "or name a `file` that holds them"
        raise meta.error(("security",), f"a secure model needs {missing}", hint)
