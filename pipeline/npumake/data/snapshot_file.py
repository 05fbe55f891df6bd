"""Writes a project's samples as a calibration snapshot of EdgeFirst.

    calibration-local-<param_hash>.safetensors      param_hash = SHA-256(canonical params)[:16]

The normalization is recorded, not applied. The project's (x - m) * s equals the snapshot's

    (x * scale - mean) / std    with    scale = 1/255    mean = m / 255    std = 1 / (255 * s)

The file holds all samples in order; `selection` records that. `resize` is `stretch`, because the
project does not record a letterbox. The file has no date and no path, so the same samples give the
same bytes. Source: the calibration snapshot of EdgeFirst Studio.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake import digest
from npumake.data.input_samples import InputSamples, ModelInput
from npumake.digest import Json

ALIGNMENT = 8  # bytes; of the data behind the header
UNIT = 1 / 255


class SnapshotFile(NamedTuple):
    name: str
    data: bytes


def snapshot_file(sets: Sequence[InputSamples]) -> SnapshotFile | None:
    """The samples of all inputs as one file. Raises ProjectError.

    Returns None if values are not pixels 0..255, or if inputs differ in size or normalization: one
    snapshot cannot hold them."""
    codes_by_name = {}
    for samples in sets:
        codes = _pictures(samples)
        if codes is None or not np.all(samples.input.section.scale):
            return None
        codes_by_name[samples.input.name] = codes
    params = [_params(samples.input, codes_by_name[samples.input.name]) for samples in sets]
    if any(other != params[0] for other in params):
        return None
    return _written(codes_by_name, params[0])


def _pictures(samples: InputSamples) -> np.ndarray | None:
    """(N, C, H, W) of uint8."""
    if len(samples.input.spec.shape) != 4:
        return None
    pictures = []
    for item in samples.items():
        x = np.asarray(samples.values(item)).reshape(samples.input.spec.shape)
        if len(x) != 1 or not ((x >= 0) & (x <= 255) & (x == np.floor(x))).all():
            return None
        codes = x.astype(np.uint8)
        pictures.append(
            codes.transpose(0, 3, 1, 2) if samples.input.section.layout == "NHWC" else codes
        )
    return np.concatenate(pictures) if pictures else None


def _params(model_input: ModelInput, pictures: np.ndarray) -> Json:
    section = model_input.section
    count, channels, *size = pictures.shape
    mean, scale = (np.broadcast_to(x, (channels,)) for x in (section.mean, section.scale))
    return {
        "dataset_id": None,
        "annotation_set_id": None,
        "split": "train",
        "input_shape": size,
        "channels": channels,
        "layout": "NCHW",
        "dtype": "uint8",
        "resize": "stretch",
        "color": section.type,
        "normalization": {
            "scale": UNIT,
            "mean": [float(m) * UNIT for m in mean],
            "std": [UNIT / float(s) for s in scale],
        },
        "count": count,
        "selection": "all_in_order",
        "seed": 0,
    }


def _written(tensors: Mapping[str, np.ndarray], params: Json) -> SnapshotFile:
    content = b"".join(np.ascontiguousarray(codes).tobytes() for codes in tensors.values())
    metadata = {
        "params": digest.canonical(params).decode(),
        "param_hash": digest.of_document(params)[:16],
        "tensor_names": json.dumps(list(tensors)),
        "dtype": "uint8",
        "value_range": "[0, 255]",
        "layout": "NCHW",
        "normalization": digest.canonical(params["normalization"]).decode(),
        "count_requested": str(params["count"]),
        "count_actual": str(params["count"]),
        "selection": params["selection"],
        "seed": str(params["seed"]),
        "content_sha256": hashlib.sha256(content).hexdigest(),
        "producer": "npumake",
    }
    entries, start = dict[str, Json](), 0
    for name, codes in tensors.items():
        entries[name] = {
            "dtype": "U8",
            "shape": list(codes.shape),
            "data_offsets": [start, start + codes.nbytes],
        }
        start += codes.nbytes
    # Written by hand: the library orders the metadata differently each time.
    header = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    name = f"calibration-local-{metadata['param_hash']}.safetensors"
    return SnapshotFile(name, struct.pack("<Q", len(header)) + header + content)
