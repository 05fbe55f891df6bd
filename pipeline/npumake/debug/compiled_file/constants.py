"""Reads weights and biases back from the bytes of a compiled file.

A changed weight shows in no output where the samples feed it zeros. But a compiler writes constants
as they are, up to the order of their axes. One whose bytes are in the file but for a few was
changed; one that is not there at all is in a form of the compiler's own, and is left to the nodes.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from itertools import permutations

import numpy as np

from npumake.bundle.program import Instruction
from npumake.debug.compiled_file.fault import Fault, fault_of
from npumake.debug.compiled_file.runs import CompiledPart

ROLES = ("weight", "bias")
PIECES = 4  # of a constant; one of them is unchanged where a few bytes differ
MIN_BYTES = 64  # a shorter piece of one occurs anywhere
ALIKE = 0.75  # least share of equal bytes of a changed constant
# Constants by role, with their types in native code.
FACTORS = {"weight": np.int8, "bias": np.int32, "mantissa": np.int32, "shift": np.int8}
MIN_FACTOR_BYTES = 16
SEARCHED = ("iree", "onnx", "openvino", "tflite")  # Vela compresses weights


def changed_constant(part: CompiledPart) -> Fault | None:
    """The first node with a constant of which a few bytes differ in the file."""
    if part.target.backend not in SEARCHED:
        return None
    data = _content(part.data)
    for step, role, values in _constants(part):
        layouts = [*_layouts(values)]
        if any(layout in data for layout in layouts):
            continue
        count = min((n for layout in layouts if (n := _changed_bytes(data, layout))), default=0)
        if count:
            error = f"{count} of {values.nbytes} bytes of its {role} differ in the file"
            return fault_of(step, part.graph, error)
    return None


def lost_constant(part: CompiledPart, recompiled: bytes) -> Fault | None:
    """The first node with a constant that is in the file `recompiled`, but not in that
    of `part`: weights, biases, or the factors of its rounding."""
    for step in part.program.instructions:
        for role, dtype in FACTORS.items():
            values = step.constants.get(role)
            if values is None or values.size * np.dtype(dtype).itemsize < MIN_FACTOR_BYTES:
                continue
            layouts = [*_layouts(values.astype(dtype))]
            if any(x in recompiled for x in layouts) and not any(x in part.data for x in layouts):
                return fault_of(step, part.graph, f"its {role} differs in the file")
    return None


def _constants(part: CompiledPart) -> Iterator[tuple[Instruction, str, np.ndarray]]:
    for step in part.program.instructions:
        for role in ROLES:
            values = step.constants.get(role)
            if values is not None and values.nbytes >= MIN_BYTES:
                yield step, role, values


def _content(data: bytes) -> bytes:
    """The bytes of the file; of a ZIP those of its members."""
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def _layouts(values: np.ndarray) -> Iterator[bytes]:
    """The bytes of the values in every order of the axes."""
    squeezed = values.squeeze()
    for order in permutations(range(squeezed.ndim)):
        yield squeezed.transpose(order).tobytes()


def _changed_bytes(data: bytes, layout: bytes) -> int:
    """How many bytes of a constant differ where one of its pieces is; 0 if it is not there."""
    size = len(layout) // PIECES
    for start in range(0, size * PIECES, size):
        piece = layout[start : start + size]
        place = data.find(piece) if len(set(piece)) > PIECES else -1
        if place < start or data.find(piece, place + 1) >= 0:
            continue
        in_file = np.frombuffer(data[place - start : place - start + len(layout)], np.uint8)
        expected = np.frombuffer(layout, np.uint8)
        if in_file.size == expected.size:
            differing = int((in_file != expected).sum())
            if 0 < differing <= (1 - ALIKE) * expected.size:
                return differing
    return 0
