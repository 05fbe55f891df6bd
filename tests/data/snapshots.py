"""Calibration snapshots as EdgeFirst Studio writes them, with any one thing changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

SIZE = (16, 24)
PARAMS: dict[str, Any] = {
    "dataset_id": "ds-2bcd",
    "annotation_set_id": None,
    "split": "train",
    "input_shape": list(SIZE),
    "channels": 3,
    "layout": "NCHW",
    "dtype": "uint8",
    "resize": "letterbox",
    "letterbox": {"pad_color": [114, 114, 114], "scale": "long_side", "round": "ceil"},
    "color": "rgb",
    "normalization": {"scale": 1 / 255, "mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]},
    "count": 9,
    "selection": "max_dynamic_range_v1",
    "seed": 42,
}


def pictures(count: int = 9, size: tuple[int, ...] = (3, *SIZE), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *size), np.uint8)


def write(
    folder: Path,
    params: Mapping[str, Any] | None = None,
    said: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
    name: str = "",
) -> Path:
    """A snapshot; keys of `params` and `said` replace what is right, None removes one."""
    changed = {key: value for key, value in {**PARAMS, **(params or {})}.items()
               if value is not None or key == "annotation_set_id"}  # fmt: skip
    tensors = {"images": pictures()} if tensors is None else tensors
    content = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values())
    param_hash = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:16]
    facts: dict[str, Any] = {
        "params": json.dumps(changed),
        "param_hash": param_hash,
        "tensor_names": json.dumps(list(tensors)),
        "dtype": "uint8",
        "value_range": "[0, 255]",
        "layout": "NCHW",
        "normalization": json.dumps(changed.get("normalization")),
        "count_requested": str(changed.get("count")),
        "count_actual": str(len(next(iter(tensors.values()), ()))),
        "selection": changed.get("selection"),
        "seed": str(changed.get("seed")),
        "content_sha256": hashlib.sha256(content).hexdigest(),
        "producer": "studio/1.13.0",
    } | dict(said or {})
    path = folder / (name or f"calibration-ds-2bcd-{facts['param_hash']}.safetensors")
    save_file(dict(tensors), path, {k: v for k, v in facts.items() if v is not None})
    return path
