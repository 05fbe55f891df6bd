"""EdgeFirst's calibration snapshot: all samples of a model in one `.safetensors` file.

Each model input has a uint8 tensor (N, C, H, W), 0..255, in the model's geometry and colors. The
normalization is recorded, not applied:

    x = (code * scale - mean) / std = (code - mean / scale) * (scale / std)

Checks run in the documented order and stop at the first error. The parameters must fit the model,
the tensors the parameters, geometry and full frames the model's tiling, and the hashes the data.
Tensors stay in the file until a sample is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors

from npumake import digest
from npumake.detection.entry import (
    FLAG,
    NUMBERS,
    OBJECT,
    SIZES,
    TEXT,
    TEXTS,
    WHOLE,
    MetadataEntry,
    read_json,
    read_object,
)
from npumake.detection.metadata import Tiling
from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.project.sections import PerChannel

AS_WRITTEN = " params"  # the original text of `params`; no key of the file starts with a space

WARNING_BYTES = 1 << 32  # of a file: the converters of EdgeFirst warn above it
NEEDED = (
    *("params", "param_hash", "tensor_names", "dtype", "value_range", "layout", "normalization"),
    *("count_requested", "count_actual", "selection", "seed", "content_sha256", "producer"),
)
FIXED = {"dtype": "uint8", "layout": "NCHW", "value_range": [0, 255]}
# Keys that occur twice: in the file → in `params`.
TWICE = {key: key for key in ("dtype", "layout", "normalization", "selection", "seed")} | {
    "count_requested": "count"
}
# Keys without effect on the samples, and why.
CARRIED = {
    "producer": "the author of the file",
    "studio_instance": "where the pictures come from",
    "pool": "which pictures it was chosen from",
    "image_ids": "which pictures were chosen",
    "params.dataset_id": "where the pictures come from",
    "params.annotation_set_id": "where the pictures come from",
    "params.split": "which pictures it was chosen from",
    "params.color": "the pixels have this color format already",
    "params.seed": "how it was chosen",
    "params.selection": "how it was chosen",
    "params.count": "the requested number; count_actual is the actual one",
}


@dataclass(frozen=True)
class Normalization:
    """The model's normalization, (code * scale - mean) / std, with one value per channel."""

    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def is_that_of(self, mean: PerChannel, scale: PerChannel) -> bool:
        """Whether the project's (code - mean) * scale is the same."""
        means, stds = np.array(self.mean), np.array(self.std)
        try:
            matches = np.allclose(means / self.scale, mean, 1e-5, 1e-6)
            return matches and np.allclose(self.scale / stds, scale, 1e-5, 0)
        except ValueError:  # another number of channels
            return False

    def __str__(self) -> str:
        mean = [round(value / self.scale, 6) for value in self.mean]
        return f"{{mean: {mean}, scale: {[self.scale / value for value in self.std]}}}"


@dataclass(frozen=True)
class Snapshot:
    """A checked snapshot. `remarks` are notes for the user."""

    path: Path
    names: tuple[str, ...]
    count: int
    normalization: Normalization
    params: Mapping[str, Json]
    remarks: tuple[str, ...] = ()

    def sample(self, name: str, index: int) -> np.ndarray:
        """(C, H, W), uint8."""
        with safetensors.safe_open(self.path, framework="numpy") as file:
            return np.asarray(file.get_slice(name)[index])

    @property
    def origin(self) -> dict[str, Json]:
        """The entries about the samples in a converter's block."""
        return {"calibration": self.path.name, "calibration_geometry": self.geometry}

    @property
    def geometry(self) -> dict[str, Json]:
        """`calibration_geometry` of a converter's block."""
        document = {key: self.params[key] for key in ("resize", "input_shape")}
        return document | ({"full_frame": True} if self.params.get("full_frame") else {})


def read_snapshot(path: Path, size: tuple[int, int], tiling: Tiling | None = None) -> Snapshot:
    """The snapshot for a model with input size (height, width).

    Raises ProjectError with the file or its key for the first error.
    """
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = MetadataEntry(_metadata(file.metadata() or {}, path.name), path.name)
            params = _fitting_params(metadata, size)
            shapes = _shapes(file, metadata)
            _check_sizes(shapes, params, size)
            _check_geometry(params, tiling)
            _check_full_frame(params, tiling)
            _check_hash(metadata, path.name)
            _check_facts(metadata, params, shapes)
            _check_content(file, metadata, tuple(shapes))
    except (safetensors.SafetensorError, OSError) as error:
        raise ProjectError(f"not a .safetensors file: {error}", path.name) from error
    large = path.stat().st_size > WARNING_BYTES
    return Snapshot(
        path=path,
        names=tuple(shapes),
        count=next(iter(shapes.values()))[0],
        normalization=_normalization(metadata.entry("normalization")),
        params=params.data,
        remarks=(f"{path.name} has more than 4 GiB: fewer samples would do",) if large else (),
    )


def _metadata(metadata: Mapping[str, str], name: str) -> dict[str, Json]:
    """`__metadata__` with its JSON values parsed. Raises ProjectError."""
    document: dict[str, Json] = {**metadata, AS_WRITTEN: metadata.get("params", "")}
    for key in ("params", "normalization"):
        if key in document:
            document[key] = read_object(document[key], f"{name}: {key}")
    for key in ("tensor_names", "value_range", "count_requested", "count_actual", "seed"):
        if key in document:
            document[key] = read_json(document[key], f"{name}: {key}")
    return document


def _fitting_params(metadata: MetadataEntry, size: tuple[int, int]) -> MetadataEntry:
    """Rule 1: the parameters exist and are for an input of this size."""
    metadata.need("params", OBJECT)
    params = metadata.entry("params")
    shape = params.need("input_shape", SIZES)
    params.need("resize", TEXT)
    if len(shape) != 2:
        raise ProjectError("`input_shape` must be [height, width]", params.below("input_shape"))
    if tuple(shape) != size:
        message = f"for an input of {shape[0]} x {shape[1]}, the model's is {size[0]} x {size[1]}"
        raise ProjectError(message, params.below("input_shape"))
    return params


def _shapes(file: safetensors.safe_open, metadata: MetadataEntry) -> dict[str, tuple[int, ...]]:
    """The shapes by model input, in the order of `tensor_names`."""
    for key in NEEDED:
        if key not in metadata.data:
            raise ProjectError(f"`{key}` is missing", metadata.where)
    names = metadata.need("tensor_names", TEXTS)
    absent = [name for name in names if name not in set(file.keys())]
    if not names or absent or len(set(names)) < len(names):
        message = f"no tensor `{absent[0]}`" if absent else "`tensor_names` must name tensors, once"
        raise ProjectError(message, metadata.below("tensor_names"))
    return {name: tuple(file.get_slice(name).get_shape()) for name in names}


def _check_sizes(
    shapes: Mapping[str, Sequence[int]], params: MetadataEntry, size: tuple[int, int]
) -> None:
    """Rule 2: samples are (C, H, W) of this size."""
    for name, shape in shapes.items():
        if len(shape) != 4:
            raise ProjectError(f"tensor `{name}` has rank {len(shape)}, not 4", params.where)
        if tuple(shape[2:]) != size:
            message = (
                f"samples of {shape[2]} x {shape[3]}, `input_shape` says {size[0]} x {size[1]}"
            )
            raise ProjectError(message, params.below("input_shape"))


def _check_geometry(params: MetadataEntry, tiling: Tiling | None) -> None:
    """Rule 3: the pictures were resized as the model's tiling requires."""
    mode = tiling.mode if tiling else None
    resize = params.data["resize"]
    allowed = {"tiled": ("tiled",), "whole_frame": ("letterbox",)}.get(
        mode or "", ("letterbox", "stretch")
    )
    of_its_own = mode is None and resize == "tiled" and isinstance(params.data.get("tiling"), dict)
    if resize not in allowed and not of_its_own:
        model = f"a model with tiling `{mode}`" if mode else "a model without tiling"
        message = f"`resize: {resize}` for {model}"
        raise ProjectError(message, params.below("resize"), f"it takes {' or '.join(allowed)}")
    if mode == "tiled" and params.entry("grid").get("algorithm", TEXT) != "evendist":
        raise ProjectError("tiles without a `grid` of `evendist`", params.below("grid"))


def _check_full_frame(params: MetadataEntry, tiling: Tiling | None) -> None:
    """Rule 4: the tiles include whole frames if and only if the model's tiling does."""
    in_file, in_model = params.get("full_frame", FLAG, False), bool(tiling and tiling.full_frame)
    if in_file != in_model:
        message = f"`full_frame` is {str(in_file).lower()}, the model's is {str(in_model).lower()}"
        raise ProjectError(message, params.below("full_frame"))


def _check_hash(metadata: MetadataEntry, name: str) -> None:
    """`param_hash` must match `params`; it has sixteen digits, in older files eight."""
    param_hash = metadata.need("param_hash", TEXT)
    if not re.fullmatch(r"[0-9a-f]{8}([0-9a-f]{8})?", param_hash):
        raise ProjectError(f"`{param_hash}` is not a hash", metadata.below("param_hash"))
    if param_hash not in {of[: len(param_hash)] for of in _hashes(metadata.data)}:
        raise ProjectError("`param_hash` is not that of `params`", metadata.below("param_hash"))
    named = re.fullmatch(r"calibration-.+-([0-9a-f]{8,16})\.safetensors", name)
    if named and named[1] != param_hash:
        raise ProjectError(f"the file's name has the hash of other parameters: {named[1]}", name)


def _hashes(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """SHA-256 of the parameters: original text, and sorted keys in two common JSON forms."""
    spaced = json.dumps(metadata["params"], sort_keys=True)
    written = (text.encode() for text in (metadata[AS_WRITTEN], spaced))
    return (digest.of_document(metadata["params"]), *map(digest.of_bytes, written))


def _check_facts(
    metadata: MetadataEntry, params: MetadataEntry, shapes: Mapping[str, Sequence[int]]
) -> None:
    """The file's facts must be true, and equal where they occur twice."""
    for key, expected in FIXED.items():
        if metadata.data[key] != expected:
            raise ProjectError(f"`{key}` must be {expected}", metadata.below(key))
    for key, other in TWICE.items():
        if other in params.data and metadata.data[key] != params.data[other]:
            message = f"`{key}` is {metadata.data[key]}, in `params` {params.data[other]}"
            raise ProjectError(message, metadata.below(key))
    count = metadata.need("count_actual", WHOLE)
    for name, shape in shapes.items():
        if shape[0] != count or count < 1:
            message = f"{shape[0]} samples for `{name}`, `count_actual` says {count}"
            raise ProjectError(message, metadata.below("count_actual"))
        channels = params.get("channels", WHOLE, shape[1])
        if shape[1] != channels:
            message = f"{shape[1]} channels in `{name}`, `params` say {channels}"
            raise ProjectError(message, params.below("channels"))
    _check_letterbox(params)


def _check_letterbox(params: MetadataEntry) -> None:
    recipe = params.get("letterbox", OBJECT)
    if (recipe is None) != (params.data["resize"] == "stretch"):
        message = "`letterbox` is there for every `resize` but stretch"
        raise ProjectError(message, params.below("letterbox"))


def _check_content(file: safetensors.safe_open, entry: MetadataEntry, names: Sequence[str]) -> None:
    """`content_sha256` must match the samples; reads one sample at a time."""
    checksum = hashlib.sha256()
    for name in names:
        tensor = file.get_slice(name)
        if tensor.get_dtype() != "U8":
            raise ProjectError(f"tensor `{name}` is {tensor.get_dtype()}, not uint8", entry.where)
        for index in range(tensor.get_shape()[0]):
            checksum.update(np.ascontiguousarray(tensor[index]).data)
    if checksum.hexdigest() != entry.data["content_sha256"]:
        raise ProjectError("the samples are not those of `content_sha256`", entry.where)


def _normalization(entry: MetadataEntry) -> Normalization:
    scale, mean, std = (entry.need(key, NUMBERS) for key in ("scale", "mean", "std"))
    means, stds = (tuple(map(float, _listed(values))) for values in (mean, std))
    if isinstance(scale, list) or scale == 0 or not means or not stds or 0 in stds:
        raise ProjectError("a normalization that divides by zero", entry.where)
    return Normalization(float(scale), means, stds)


def _listed(value: Json) -> list[float]:
    return value if isinstance(value, list) else [value]
