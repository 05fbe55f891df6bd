"""SyNAP's rules across the keys of a metafile, the model and its chips."""

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
    """A metafile with its document, and the model and chips that it applies to."""

    document: Document
    metafile: Metafile
    suffix: str = ""  # of the model file
    chips: tuple[str, ...] = ()

    @property
    def layout(self) -> str:
        """The layout of the model file's format: NHWC or NCHW."""
        return "NHWC" if self.suffix in CHANNELS_LAST else "NCHW"

    @property
    def inputs(self) -> tuple[InputEntry, ...]:
        """The entries of `inputs`; at least one, since every model has an input."""
        return tuple(entry or InputEntry() for entry in self.metafile.inputs) or (InputEntry(),)

    @property
    def outputs(self) -> tuple[OutputEntry, ...]:
        return tuple(entry or OutputEntry() for entry in self.metafile.outputs)

    @property
    def datasets(self) -> tuple[str, ...]:
        """One dataset per input; none if the model is not quantized."""
        dataset = self.metafile.quantization and self.metafile.quantization.dataset
        return (dataset,) if isinstance(dataset, str) else tuple(dataset or ())

    def spot(self, *route: str | int) -> RoutePlace:
        """The place of the route, or of its nearest parent in the file."""
        ways: list[Route] = [route[:depth] for depth in range(len(route), -1, -1)]
        return next(self.document.places[way] for way in ways if way in self.document.places)

    def error(self, route: Route, what: str, hint: str = "") -> ProjectError:
        return ProjectError(what, self.spot(*route).value, hint)


def typed_metafile(document: Document) -> Meta:
    """The metafile in `document`. Raises the first ProjectError: an unknown key, or a wrong
    value."""
    data = _without_blanks(document.data, SCHEMA)
    places = {route: document.places[route] for route in routes(data)}
    plain = Document(document.path, data, places)
    check(plain, SCHEMA)
    return Meta(plain, built(Metafile, plain.data))


def _without_blanks(data: Json, schema: Json) -> Json:
    """The data without known keys that have no value."""
    if isinstance(data, list):
        return [_without_blanks(item, schema.get("items", {})) for item in data]
    if not isinstance(data, dict):
        return data
    properties = schema.get("properties", {})
    return {
        key: _without_blanks(item, properties.get(key, {}))
        for key, item in data.items()
        if item is not None or key not in properties
    }


def checked_metafile(document: Document, beside: Json) -> Meta:
    """The metafile for the `model` and `targets` in the rest of project.yaml, `beside`.

    Raises the first ProjectError, also for a broken rule of SyNAP.
    """
    path, chips = _model_and_chips(beside if isinstance(beside, dict) else {})
    suffix = PurePosixPath(path).suffix.lower()
    meta = replace(typed_metafile(document), suffix=suffix, chips=chips)
    for rule in (_layout, _names, _shapes, _normalization, _quantization, _delegate, _security):
        rule(meta)
    return meta


def _model_and_chips(beside: Mapping[str, Json]) -> tuple[str, tuple[str, ...]]:
    """The model path and the chips, if present; the check of the project reports their errors."""
    model, targets = beside.get("model"), beside.get("targets")
    path = model.get("path") if isinstance(model, dict) else None
    listed = targets if isinstance(targets, list) else []
    chips = [next(iter(entry), "") if isinstance(entry, dict) else entry for entry in listed]
    return path if isinstance(path, str) else "", tuple(map(str, chips))


def _layout(meta: Meta) -> None:
    layout, key = meta.metafile.data_layout.lower(), ("data_layout",)
    if layout not in ("default", "nchw", "nhwc"):
        message = f"`data_layout` cannot be `{meta.metafile.data_layout}`"
        raise meta.error(key, message, "allowed: default, nchw, nhwc")
    if layout == "nhwc" and meta.layout == "NCHW":
        message = f"a model in {meta.suffix or 'ONNX'} cannot become nhwc"
        raise meta.error(key, message, "leave `data_layout` out, or write default")


def _names(meta: Meta) -> None:
    groups: tuple[tuple[str, tuple[InputEntry | OutputEntry, ...]], ...] = (
        ("inputs", meta.inputs if meta.metafile.inputs else ()),
        ("outputs", meta.outputs),
    )
    for key, entries in groups:
        names = [entry.name for entry in entries]
        repeated = [name for name, count in Counter(filter(None, names)).items() if count > 1]
        if repeated:
            at = len(names) - 1 - names[::-1].index(repeated[0])
            raise meta.error((key, at, "name"), f"`{repeated[0]}` is written twice under `{key}`")
        if None in names and any(names):
            message = f"some of the {key} have a name and others have none"
            raise meta.error((key, names.index(None)), message, "name all of them, or none")
        if meta.suffix == ".pb" and not any(names):
            message = f"a .pb model does not state its {key}"
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
        hint = "one per input; an input without settings is an empty item of `inputs:`"
        raise meta.error(("quantization", "dataset"), message, hint)


def _quantization(meta: Meta) -> None:
    quantization = meta.metafile.quantization
    if quantization is None:
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
    if quantization.scheme != "default" and kind not in SCHEMES[quantization.scheme]:
        message = f"`{quantization.scheme}` is not for {kind}"
        hint = f"it is for {' and '.join(SCHEMES[quantization.scheme])}"
        raise meta.error(("quantization", "scheme"), message, hint)


def types_of(meta: Meta) -> Mapping[str, str]:
    """data_type as a map; empty if it is absent."""
    quantization = meta.metafile.quantization
    kinds = quantization.data_type if quantization and quantization.data_type is not None else {}
    return {EVERY: kinds} if isinstance(kinds, str) else kinds


def base_type(types: Mapping[str, str]) -> str:
    """The type of a layer without its own: the 8-bit type in `types`, else that of `*`, else
    uint8."""
    types_of_8_bits = (kind for kind in ("int8", "uint8") if kind in types.values())
    return next(types_of_8_bits, types.get(EVERY, "uint8"))


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
    delegate = meta.metafile.delegate
    return {EVERY: delegate} if isinstance(delegate, str) else delegate


def delegate_type(value: str) -> str:
    """The first word of a delegate; its options follow."""
    return (value.split() or ["default"])[0].lower()


def layer_delegates(document: Document) -> dict[str, str]:
    """The delegate of each layer, by its name in the native document."""
    delegates = delegates_of(typed_metafile(document))
    return {layer_name(name): delegate_type(value) for name, value in delegates.items()}


def layer_name(name: str) -> str:
    """The name of a layer. `@id` refers to quantization_info.yaml, whose ids are names here."""
    return name.removeprefix("@")


def _security(meta: Meta) -> None:
    security = meta.metafile.security
    if security is None or not security.secure:
        return
    keys = [key for key in SECRETS if getattr(security, key) is not None]
    if security.file is not None and keys:
        message = f"both a security `file` and `{keys[0]}`"
        raise meta.error(("security", keys[0]), message, "keep one of them")
    if security.file is None and len(keys) < len(SECRETS):
        missing = ", ".join(f"`{key}`" for key in SECRETS if key not in keys)
        hint = "or name a `file` that holds them"
        raise meta.error(("security",), f"a secure model needs {missing}", hint)
