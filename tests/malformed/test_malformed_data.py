"""Malformed samples: each is one clear error, quickly, in little memory, and touches nothing else.

A row: its name, the sample's file, its bytes, words of the one error. The image input of digits
takes 8 x 8 pixels.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from malformed.runner import Case, Server, check

COMMAND = ("build", "digits:samples")
YAML = """model: {path: model.onnx}
inputs: {image: {offset: 128, scale: 0.0625}}
data: {image: {files: bad/*, %s}}
targets: [rdk-x5]
"""
PIXELS = np.arange(64, dtype=np.uint8).reshape(1, 1, 8, 8)
PHOTO = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(shape: str, descr: str = "'|u1'", body: bytes = bytes(64), version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + body


def zipped(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def zip_bomb() -> bytes:
    """257 MiB of zeros in 257 KiB."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(header("(1, 1, 16416, 16416)", body=b""))
        for _ in range(257):
            member.write(bytes(1 << 20))
    return file.getvalue()


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


def tensors(head: object, body: bytes = bytes(64)) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + body


def tensor(start: int, end: int, shape: list[int] | None = None, dtype: str = "U8") -> dict:
    return {"dtype": dtype, "shape": shape or [1, 1, 8, 8], "data_offsets": [start, end]}


def saved(form: str, **options: object) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PHOTO).save(file, form, **options)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png(width: int, height: int, body: bytes, *before: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    parts = (b"\x89PNG\r\n\x1a\n", head, *before, chunk(b"IDAT", body), chunk(b"IEND", b""))
    return b"".join(parts)


def bmp(width: int, height: int, bits: int = 24, offset: int = 54, body: bytes = b"") -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, offset) + info + body


def jpeg(width: int, height: int) -> bytes:
    whole = saved("JPEG")
    start = whole.index(b"\xff\xc0")
    return whole[: start + 5] + struct.pack(">HH", height, width) + whole[start + 9 :]


NPY, NPZ, TENSORS, IMAGE = (
    "not a .npy file of numbers",
    "not a .npz file",
    "not a .safetensors file",
    "a damaged image",
)
DEEP = b"[" * 100_000
GOOD = tensor(0, 64)
BYTES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "nothing": ("a.npy", lambda: b"", NPY),
    "a header cut off": ("a.npy", lambda: npy(PIXELS)[:40], NPY),
    "an array cut off": ("a.npy", lambda: npy(PIXELS)[:-1], NPY),
    "bytes to spare": ("a.npy", lambda: npy(PIXELS) + b"\0", NPY),
    "another magic": ("a.npy", lambda: b"\x93NUMPX" + npy(PIXELS)[6:], NPY),
    "another version": ("a.npy", lambda: b"\x93NUMPY\x09\x00" + npy(PIXELS)[8:], NPY),
    "a pickle": ("a.npy", lambda: pickle.dumps(PIXELS), NPY),
    "pickled objects": ("a.npy", lambda: npy(np.array([{}], object)), NPY),
    "objects without a pickle": ("a.npy", lambda: header("(8,)", "'|O'"), NPY),
    "a petabyte": ("a.npy", lambda: header("(1, 1, 33554432, 33554432)"), NPY),
    "more than can be counted": ("a.npy", lambda: header(f"({'9' * 40},)"), NPY),
    "a negative side": ("a.npy", lambda: header("(-1, 64)"), NPY),
    "negative twice": ("a.npy", lambda: header("(-8, -8)"), NPY),
    "no side at all": ("a.npy", lambda: header("(0, 0)", body=b""), "an empty sample"),
    "a hundred sides": ("a.npy", lambda: header(f"({'1, ' * 100})", body=b"\1"), NPY),
    "a header of code": ("a.npy", lambda: header("__import__('os').getcwd()"), NPY),
    "a header of brackets": ("a.npy", lambda: header("(" * 900), NPY),
    "a header of 4 GB": ("a.npy", lambda: b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", NPY),
    "a header of 16 MB": ("a.npy", lambda: header("(" + " " * (16 << 20), version=2), NPY),
    "a type of 2 GB": ("a.npy", lambda: header("(1,)", "'|V2000000000'"), NPY),
    "a type in types": (
        "a.npy",
        lambda: header("(8, 8)", "[('a', [('b', 'u1')])]"),
        "a sample of",
    ),
    "text": ("a.npy", lambda: npy(np.full((1, 1, 8, 8), "x")), "a sample of"),
    "NaN": ("a.npy", lambda: npy(np.full((1, 1, 8, 8), np.nan, np.float32)), "with NaN"),
    "an archive of nothing": ("a.npz", lambda: zipped({}), "0 arrays in one file"),
    "no archive": ("a.npz", lambda: npy(PIXELS), NPZ),
    "an archive cut off": ("a.npz", lambda: zipped({"x.npy": npy(PIXELS)})[:-30], NPZ),
    "a zip bomb": ("a.npz", zip_bomb, "more than 268435456 bytes"),
    "a zip in a zip": ("a.npz", lambda: zipped({"x.npy": zipped({"x.npy": npy(PIXELS)})}), NPY),
    "a pickle in an archive": ("a.npz", lambda: zipped({"x.npy": pickle.dumps(PIXELS)}), NPY),
    "a member that climbs": (
        "a.npz",
        lambda: zipped({"../../x.npy": npy(PIXELS), "/y.npy": npy(PIXELS)}),
        "2 arrays in one file",
    ),
    "an unusual compression": (
        "a.npz",
        lambda: zipped({"x.npy": npy(PIXELS)}, zipfile.ZIP_LZMA),
        "an unusual compression",
    ),
    "an unknown compression": (
        "a.npz",
        lambda: changed(zipped({"x.npy": npy(PIXELS)}), b"\x14\0\0\0\x08\0", b"\x14\0\0\0\x63\0"),
        "a.npz",
    ),
    "an encrypted member": (
        "a.npz",
        lambda: changed(zipped({"x.npy": npy(PIXELS)}), b"\x14\0\0\0\x08", b"\x14\0\1\0\x08"),
        NPZ,
    ),
    "a wrong checksum": (
        "a.npz",
        lambda: changed(
            zipped({"x.npy": npy(PIXELS)}), zlib.crc32(npy(PIXELS)).to_bytes(4, "little"), b"abcd"
        ),
        NPZ,
    ),
    "members over each other": (
        "a.npz",
        lambda: changed(zipped({"x.npy": npy(PIXELS)}), b"\0\0\0\0x.npy", b"\xf0\0\0\0x.npy"),
        NPZ,
    ),
    "ten thousand members": (
        "a.npz",
        lambda: zipped({f"{n}.npy": b"" for n in range(10_000)}),
        "10000 arrays in one file",
    ),
    "no tensors": ("a.safetensors", lambda: b"", TENSORS),
    "a head of an exabyte": ("a.safetensors", lambda: b"\xff" * 8 + b"{}", TENSORS),
    "a head of blanks": ("a.safetensors", lambda: tensors(b" " * 10_000_000), TENSORS),
    "a head of brackets": ("a.safetensors", lambda: tensors(DEEP), TENSORS),
    "a head that is no JSON": ("a.safetensors", lambda: tensors(b"{x}"), TENSORS),
    "a head that is a list": ("a.safetensors", lambda: tensors([1]), TENSORS),
    "offsets behind the end": ("a.safetensors", lambda: tensors({"x": tensor(0, 999)}), TENSORS),
    "offsets backwards": ("a.safetensors", lambda: tensors({"x": tensor(64, 0)}), TENSORS),
    "offsets below zero": ("a.safetensors", lambda: tensors({"x": tensor(-64, 0)}), TENSORS),
    "tensors over each other": ("a.safetensors", lambda: tensors({"x": GOOD, "y": GOOD}), TENSORS),
    "a hole between tensors": ("a.safetensors", lambda: tensors({"x": tensor(8, 72)}), TENSORS),
    "a shape of other bytes": (
        "a.safetensors",
        lambda: tensors({"x": tensor(0, 64, [1, 1, 9, 9])}),
        TENSORS,
    ),
    "a shape that overflows": (
        "a.safetensors",
        lambda: tensors({"x": tensor(0, 64, [1 << 62, 1 << 62, 8])}),
        TENSORS,
    ),
    "an unknown type": (
        "a.safetensors",
        lambda: tensors({"x": tensor(0, 64, dtype="PY")}),
        TENSORS,
    ),
    "bfloat16": (
        "a.safetensors",
        lambda: tensors({"x": tensor(0, 128, dtype="BF16")}, bytes(128)),
        "a tensor of BF16",
    ),
    "an image of nothing": ("a.png", lambda: b"", "not a JPEG, PNG or BMP image"),
    "an image of text": ("a.jpg", lambda: b"hello" * 99, "not a JPEG, PNG or BMP image"),
    "a GIF in disguise": ("a.png", lambda: saved("GIF"), "not a JPEG, PNG or BMP image"),
    "a TIFF in disguise": ("a.jpg", lambda: saved("TIFF"), "not a JPEG, PNG or BMP image"),
    "a JPEG cut off": ("a.jpg", lambda: saved("JPEG")[:900], IMAGE),
    "a head of JPEG alone": ("a.jpg", lambda: saved("JPEG")[:30], "a.jpg"),
    "a JPEG that claims to be huge": ("a.jpg", lambda: jpeg(65500, 65500), "pixels"),
    "a JPEG without a side": ("a.jpg", lambda: jpeg(0, 64), "a.jpg"),
    "a PNG cut off": ("a.png", lambda: saved("PNG")[:900], IMAGE),
    "a PNG with a wrong checksum": (
        "a.png",
        lambda: changed(saved("PNG"), b"IDAT", b"IDAU"),
        "a.png",
    ),
    "a PNG of 3.6 gigapixels": (
        "a.png",
        lambda: png(60000, 60000, zlib.compress(bytes(1 << 20))),
        "an image of more than 89478485 pixels",
    ),
    "a PNG of 100 megapixels": (
        "a.png",
        lambda: png(10000, 10000, zlib.compress(bytes(1 << 20))),
        "an image of more than 89478485 pixels",
    ),
    "a PNG of 64 MiB of text": (
        "a.png",
        lambda: png(8, 8, b"", chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(1 << 26)))),
        IMAGE,
    ),
    "a PNG without a side": ("a.png", lambda: png(0, 8, zlib.compress(b"")), "a.png"),
    "a PNG of sixteen bits": (
        "a.png",
        lambda: _sixteen_bits(),
        "an image of mode I;16: only 8 bits are read",
    ),
    "a BMP cut off": ("a.bmp", lambda: saved("BMP")[:900], IMAGE),
    "a BMP that claims to be huge": ("a.bmp", lambda: bmp(60000, 60000), "pixels"),
    "a BMP upside down without end": ("a.bmp", lambda: bmp(8, -(1 << 31)), "a.bmp"),
    "a BMP of 99 bits": ("a.bmp", lambda: bmp(8, 8, 99), "a.bmp"),
    "a BMP that starts behind its end": ("a.bmp", lambda: bmp(8, 8, offset=1 << 30), "a.bmp"),
    "a byte too few": ("a.bin", lambda: bytes(63), "63 bytes, the input takes 64"),
    "no bytes": ("a", lambda: b"", "0 bytes, the input takes 64"),
}


def _sixteen_bits() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8)).save(file, "PNG")
    return file.getvalue()


def laid(project: Path, keys: str = "allow: [few]") -> Path:
    """The folder of the samples, empty."""
    (project / "project.yaml").write_text(YAML % keys)
    folder = project / "bad"
    folder.mkdir()
    return folder


@pytest.mark.slow(cases=36)
@pytest.mark.parametrize("name", BYTES)
def test_a_malformed_sample_is_one_error(name: str, server: Server, tmp_path: Path) -> None:
    file, data, words = BYTES[name]
    case = Case(
        name, lambda project: (laid(project) / file).write_bytes(data()), COMMAND, 2, (words, file)
    )
    check(case, server, tmp_path / "w")


def sample(name: str, make: Callable[[Path], object], keys: str = "allow: [few]"):
    return lambda project: make(laid(project, keys) / name)


def held(array: np.ndarray) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(npy(array))


FILES = (
    Case("a folder", sample("a.npy", Path.mkdir), COMMAND, 2, ("no file matches `bad/*`",)),
    Case("a pipe", sample("a.npy", os.mkfifo), COMMAND, 2, ("plain file",)),
    Case(
        "a link to nothing",
        sample("a.npy", lambda path: path.symlink_to("nowhere")),
        COMMAND,
        2,
        ("no file matches `bad/*`",),
    ),
    Case(
        "a link to a device",
        sample("a.npy", lambda path: path.symlink_to("/dev/zero")),
        COMMAND,
        2,
        ("plain file",),
    ),
    Case(
        "a link to a file that is no sample",
        sample("a.npy", lambda path: path.symlink_to("../../../dodo.py")),
        COMMAND,
        2,
        (NPY, "a.npy"),
    ),
    Case(
        "a name that is no text",
        sample("a.npy", lambda path: Path(os.fsdecode(bytes(path.parent) + b"/\xff.npy")).touch()),
        COMMAND,
        2,
        (NPY, r"\udcff.npy"),
    ),
    Case(
        "a name with line breaks",
        sample("a\nb\x1b[2J.npy", Path.touch),
        COMMAND,
        2,
        (NPY, r"a\x0ab\x1b[2J.npy"),
    ),
    Case(
        "a stack of nothing",
        sample("a.npy", held(PIXELS[:0]), "stacked: true"),
        COMMAND,
        2,
        ("0 samples, at least 8 are needed",),
    ),
    Case(
        "a stack of a petabyte",
        sample("a.npy", lambda path: path.write_bytes(header("(1 << 50, 8, 8)")), "stacked: true"),
        COMMAND,
        2,
        (NPY,),
    ),
    Case(
        "a stack of a billion samples of nothing",
        sample(
            "a.npy",
            lambda path: path.write_bytes(header("(1000000000, 0)", body=b"")),
            "stacked: true",
        ),
        COMMAND,
        2,
        ("an empty sample", "0 of a.npy"),
    ),
    Case(
        "a stack that is no stack",
        sample("a.npy", held(np.uint8(3)), "stacked: true"),
        COMMAND,
        2,
        ("a single number is not a stack of samples",),
    ),
    Case(
        "pictures of complex numbers",
        sample("a.npy", held(np.ones((9, 9, 1), complex)), "transforms: [resize]"),
        COMMAND,
        2,
        ("which are not numbers", "a.npy"),
    ),
    Case(
        "a picture grown beyond measure",
        sample(
            "a.npy",
            held(np.ones((9, 9, 1), np.uint8)),
            "transforms: [resize: {target_size: [1000000, 1000000]}]",
        ),
        COMMAND,
        2,
        ("project.yaml:3",),
    ),
    Case(
        "a border beyond measure",
        sample(
            "a.npy",
            held(np.ones((9, 9, 1), np.uint8)),
            "transforms: [pad: {target_size: [8192, 8192], size_divisor: 8191}]",
        ),
        COMMAND,
        2,
        ("16382 x 16382 is too large", "project.yaml:3"),
    ),
    Case(
        "noise beyond count",
        sample("a.npy", Path.touch, "random: 1000000000"),
        COMMAND,
        2,
        ("project.yaml:3",),
    ),
)


@pytest.mark.parametrize("case", FILES, ids=lambda case: case.name)
def test_what_is_no_sample_is_one_error(case: Case, server: Server, tmp_path: Path) -> None:
    check(case, server, tmp_path / "w")
