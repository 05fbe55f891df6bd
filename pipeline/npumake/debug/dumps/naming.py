"""Parses file names of a dump: tensor name, index, shape and type.

PATTERNS is the table of the naming schemes, most specific first:

    model_infer_output_0_disp.bin                     hrt_model_exec infer --enable_dump
    layer-3-Conv-conv1-output-0-conv1_out.bin         hrt_model_exec --dump_intermediate
    CONV2D_uid_12_t_0_s_56_56_64_1.txt                ovxlib, the driver of Vivante's NPUs (SyNAP)
    iter_0_attach_conv1_out0_0_out0_1_64_56_56.tensor   Acuity's and SyNAP's inference
    out0, output_0, outputs_0                         by index: synap_cli, iree-run-module
    conv1_1x64x56x56_int8                             shape and type at the end of the name
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_INTEGERS = {
    f"{sign}int{bits}": (sign or "i", bits) for sign in ("", "u") for bits in (8, 16, 32, 64)
}
TYPES = {
    **{name: name for name in (*_INTEGERS, "float16", "float32", "float64", "bool")},
    **{f"{sign}{bits}": name for name, (sign, bits) in _INTEGERS.items()},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"{kind}{bits}": f"float{bits}" for kind in ("f", "fp") for bits in (16, 32, 64)},
    **{"float": "float32", "half": "float16", "double": "float64"},
}
_TYPE = "|".join(sorted(TYPES, key=len, reverse=True))
MAX_NAME_CHARACTERS = 1024  # longer names are not parsed
_DIMS = r"\d+(?:[x_,-]\d+)*"


@dataclass(frozen=True)
class Label:
    """A parsed name. `role` is `output` or `input` if `index` counts those of the model. Of files
    with the same tensor, the lowest `rank` is taken."""

    names: tuple[str, ...]
    role: str = ""
    index: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    rank: int = 0


def label(name: str) -> Label:
    """The label of a path inside the dump, without its suffix."""
    if len(name) > MAX_NAME_CHARACTERS:
        return Label((name,))
    last = name.rpartition("/")[2]
    for pattern in PATTERNS:
        match = re.fullmatch(pattern, last)
        if match is not None:
            return _read(match.groupdict(), name)
    return _tail(name)


PATTERNS = (
    r"model_infer_(?P<role>input|output)_(?P<index>\d+)(?:_(?P<name>.+))?",
    r"layer-\d+-[^-]+-(?P<node>.+)-(?P<side>input|output)-(?P<place>\d+)-(?P<name>.+)",
    r"(?:.+_)?NBG_uid_\d+_t_(?P<index>\d+)_s_(?P<reversed>\d+(?:_\d+)*)",
    r"(?:.+_)?(?P<name>[A-Z0-9_]+_uid_\d+_t_\d+)_s_(?P<reversed>\d+(?:_\d+)*)",
    r"iter_\d+_(?:attach_)?(?P<name>.+?)[_/]out\d+(?:_\d+_out\d+)?_(?P<dims>\d+(?:_\d+)*)",
    r"(?P<role>in|out|input|output|inputs|outputs)_?(?P<index>\d+)",
)


def _read(groups: dict[str, str | None], name: str) -> Label:
    names = [groups[key] for key in ("name", "node") if groups.get(key)]
    shape = groups.get("dims") or groups.get("reversed")
    sizes = None if shape is None else tuple(map(int, shape.split("_")))
    if groups.get("reversed") and sizes is not None:
        sizes = sizes[::-1]
    role = (groups.get("role") or "").rstrip("s")
    index = groups.get("index")
    if index is not None and not role:
        role = "output"
    role = {"in": "input", "out": "output"}.get(role, role)
    names_ = tuple(
        tensor_name.removesuffix(".data") for tensor_name in names if tensor_name is not None
    )
    rank = 2 if groups.get("side") == "input" else 1 if groups.get("side") else 0
    if rank == 2:
        names_ = names_[:1]  # the node is the tensor's reader
    place = None if index is None else int(index)
    return Label((name, *names_), role, place, sizes, None, rank)


def _tail(name: str) -> Label:
    """Shape and type at the end of the name, in either order; both the part before and the whole
    are names."""
    dims_then_type = rf"(?P<name>.+?)[_.-](?P<dims>{_DIMS})[_.-](?P<type>{_TYPE})"
    type_then_dims = rf"(?P<name>.+?)[_.-](?P<type>{_TYPE})[_.-](?P<dims>{_DIMS})"
    dims = r"(?P<name>.+?)[_.-](?P<dims>\d+(?:x\d+)+)"
    kind = rf"(?P<name>.+?)[_.-](?P<type>{_TYPE})"
    for pattern in (dims_then_type, type_then_dims, dims, kind):
        match = re.fullmatch(pattern, name)
        if match is not None:
            groups = match.groupdict()
            sizes = groups.get("dims")
            shape = None if not sizes else tuple(map(int, re.split("[x_,-]", sizes)))
            dtype = TYPES[groups["type"]] if groups.get("type") else None
            return Label((name, groups["name"]), shape=shape, dtype=dtype)
    return Label((name,))
