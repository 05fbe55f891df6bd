"""A program in one file: deterministic, readable by any ZIP reader, and never half trusted."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from npumake import digest
from npumake.bundle.archive import MEMBERS, Bundle
from npumake.bundle.packing import ALIGNMENT
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.digest import Json
from npumake.errors import GraphError

WEIGHT = np.arange(-3, 3, dtype=np.int8).reshape(2, 3)
PROGRAM = Program(
    ("x",),
    ("y",),
    {
        "x": Tensor((1, 3), "float32"),
        "q": Tensor((1, 3), "int8", 0.5, -1),
        "y": Tensor((1, 2), "int8", 0.25),
    },
    (
        Instruction("quantize", "in", ("x",), ("q",)),
        Instruction(
            "matmul",
            "product",
            ("q",),
            ("y",),
            {
                "weight": WEIGHT,
                "again": WEIGHT.copy(),
                "shift": np.array(7, np.int64),
                "none": np.zeros((0, 3), np.int32),
            },
            {"low": -128, "high": 127, "rounding": "half_even", "pads": [0, 1]},
        ),
    ),
)
BUNDLE = Bundle("rdk-x5", PROGRAM, {"quantized": "ab" * 32, "tools": {"numpy": "2"}})
DATA = BUNDLE.to_bytes()


def members(data: bytes = DATA) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(given: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in given:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return file.getvalue()


def signed(**changed: bytes) -> bytes:
    """A file with other members, whose manifest gives their true digests."""
    given = members() | {f"{name}.{MEMBERS_BY_STEM[name]}": data for name, data in changed.items()}
    manifest = json.loads(given["manifest.json"])
    manifest["sha256"] = {n: digest.of_bytes(d) for n, d in given.items() if n != "manifest.json"}
    return archived([*({**given, "manifest.json": digest.canonical(manifest)}).items()])


MEMBERS_BY_STEM = dict(name.split(".") for name in MEMBERS)


def was_refused(data: bytes) -> bool:
    """Whether a GraphError was raised. If not, what was read is exactly what would be written."""
    try:
        bundle = Bundle.from_bytes(data, "b.hybrid")
    except GraphError:
        return True
    assert members(bundle.to_bytes()) == members(data)
    return False


def assert_refused(data: bytes) -> None:
    with pytest.raises(GraphError) as caught:
        Bundle.from_bytes(data, "b.hybrid")
    assert caught.value.where == "b.hybrid"


# -- what is written -------------------------------------------------------------------------


def test_a_round_trip_gives_the_same_program():
    bundle = Bundle.from_bytes(DATA)
    assert bundle.to_bytes() == DATA
    assert (bundle.target, bundle.provenance) == (BUNDLE.target, BUNDLE.provenance)
    assert bundle.program.tensors == PROGRAM.tensors
    step, given = bundle.program.instructions[1], PROGRAM.instructions[1]
    assert replace(step, constants={}) == replace(given, constants={})
    for role, array in given.constants.items():
        assert step.constants[role].dtype == array.dtype
        np.testing.assert_array_equal(step.constants[role], array)


def test_a_saved_bundle_is_loaded(tmp_path):
    BUNDLE.save(tmp_path / "b.hybrid")
    assert Bundle.load(tmp_path / "b.hybrid").to_bytes() == DATA


def test_the_bytes_do_not_depend_on_the_order_things_were_made_in():
    step = PROGRAM.instructions[1]
    backwards = replace(
        PROGRAM,
        tensors=dict(reversed(PROGRAM.tensors.items())),
        instructions=(
            PROGRAM.instructions[0],
            replace(step, constants=dict(reversed(step.constants.items()))),
        ),
    )
    assert Bundle(BUNDLE.target, backwards, BUNDLE.provenance).to_bytes() == DATA


def test_any_reader_opens_the_file():
    with zipfile.ZipFile(io.BytesIO(DATA)) as archive:
        assert archive.testzip() is None
        assert tuple(archive.namelist()) == MEMBERS
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def places() -> dict[str, Json]:
    return json.loads(members()["program.json"])["instructions"][1]["constants"]


def test_constants_are_aligned():
    assert {offset % ALIGNMENT for offset, _, _ in places().values()} == {0}


def test_equal_constants_are_stored_once():
    assert places()["weight"] == places()["again"]
    assert members()["weights.bin"].count(WEIGHT.tobytes()) == 1


def test_the_manifest_says_what_is_fed_and_given():
    manifest = json.loads(members()["manifest.json"])
    assert manifest["target"] == "rdk-x5"
    assert [value["name"] for value in manifest["inputs"] + manifest["outputs"]] == ["x", "y"]
    assert manifest["outputs"][0]["scale"] == 0.25


def test_a_constant_of_another_type_is_not_written():
    step = replace(PROGRAM.instructions[1], constants={"weight": np.zeros(2, np.complex64)})
    with pytest.raises(TypeError, match="complex64"):
        Bundle("t", replace(PROGRAM, instructions=(step,)), {}).to_bytes()


# -- what is refused -------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed_or_harmless():
    rng = random.Random(0)
    for at in sorted(rng.sample(range(len(DATA)), 400)):
        changed = bytearray(DATA)
        changed[at] ^= 1 << rng.randrange(8)
        assert was_refused(bytes(changed)) or members(bytes(changed)) == members()


def test_every_truncation_is_refused():
    for length in range(0, len(DATA), 7):
        assert_refused(DATA[:length])


def test_every_change_of_the_contents_is_refused():
    for name, data in members().items():
        for changed in (data + b" ", data[:-1], b"", data.replace(b"1", b"2", 1)):
            if changed != data:
                assert_refused(archived([*({**members(), name: changed}).items()]))


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_members_are_refused(compression):
    assert_refused(archived([*members().items()], compression))


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = {**members(), "weights.bin": bytes(50_000_000)}
    assert_refused(archived([*bomb.items()], zipfile.ZIP_DEFLATED))


def test_other_members_are_refused():
    given = [*members().items()]
    assert_refused(archived([*given, ("extra.txt", b"hello")]))
    for missing in range(len(given)):
        assert_refused(archived(given[:missing] + given[missing + 1 :]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_written_twice_is_refused():
    for member in members().items():
        assert_refused(archived([*members().items(), member]))


def test_huge_claimed_sizes_are_refused():
    at = DATA.rindex(b"PK\x01\x02")  # the last entry of the directory: the provenance
    for size in (len(DATA), 1 << 31, (1 << 32) - 2):
        changed = DATA[: at + 20] + struct.pack("<LL", size, size) + DATA[at + 28 :]
        assert_refused(changed)


def routes(value: Json, route: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield route
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from routes(value[key], (*route, key))


def put(value: Json, route: tuple[str | int, ...], new: Json) -> Json:
    if not route:
        return new
    copy = value.copy()
    copy[route[0]] = put(value[route[0]], route[1:], new)
    return copy


STRANGE = (None, True, -1, 1.5, 1 << 80, "", "int8", "x", [], [1], [-1], ["x"], {}, {"x": 1})


@pytest.mark.slow
def test_a_strange_value_anywhere_is_refused_or_another_program():
    """Another name is another program; a number where a name belongs is none."""
    program = json.loads(members()["program.json"])
    changed = [put(program, route, new) for route in routes(program) for new in STRANGE]
    refused = [was_refused(signed(program=digest.canonical(document))) for document in changed]
    assert sum(refused) > 0.8 * len(changed)


@pytest.mark.parametrize(
    ("route", "new"),
    [
        (("inputs",), "x"),
        (("inputs", 0), "z"),
        (("outputs",), ["nothing"]),
        (("tensors", "q"), None),
        (("tensors", "q", "dtype"), "int9"),
        (("tensors", "q", "dtype"), "i1"),
        (("tensors", "q", "shape"), [1, -3]),
        (("tensors", "q", "shape"), [1.0, 3]),
        (("tensors", "q", "shape"), [True, 3]),
        (("tensors", "q", "scale"), 1),
        (("tensors", "q", "scale"), "0.5"),
        (("tensors", "q", "zero_point"), 0.0),
        (("tensors", "q"), {"shape": [1, 3], "dtype": "int8", "scale": 0.5}),
        (("instructions",), {}),
        (("instructions", 0, "op"), ["quantize"]),
        (("instructions", 0, "inputs"), ["y"]),
        (("instructions", 0, "outputs"), ["undescribed"]),
        (("instructions", 1, "attributes"), []),
        (("instructions", 1, "constants"), []),
        (("instructions", 1, "constants", "weight"), [0, "int8"]),
        (("instructions", 1, "constants", "weight"), [0, "int8", [2, 3], 0]),
        (("instructions", 1, "constants", "weight"), [-64, "int8", [2, 3]]),
        (("instructions", 1, "constants", "weight"), [0.0, "int8", [2, 3]]),
        (("instructions", 1, "constants", "weight"), [1, "int8", [2, 3]]),
        (("instructions", 1, "constants", "weight"), [0, "object", [2, 3]]),
        (("instructions", 1, "constants", "weight"), [0, "int8", [-1]]),
        (("instructions", 1, "constants", "weight"), [0, "int8", [1 << 40]]),
        (("instructions", 1, "constants", "weight"), [0, "int8", [1 << 62, 8]]),
        (("instructions", 1, "constants", "weight"), [0, "int8", [1 << 80]]),
        (("instructions", 1, "constants", "weight"), [0, "int8", [1] * 99]),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused(route, new):
    program = json.loads(members()["program.json"])
    assert_refused(signed(program=digest.canonical(put(program, route, new))))


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"null",
        b'{"inputs":NaN}',
        b'{"inputs":1e999}',
        b'{"inputs":' + b"9" * 10_000 + b"}",
        b'{"a":1,"a":2}',
        b"\xff\xfe",
        b"",
    ],
    ids=["lists", "objects", "null", "NaN", "1e999", "digits", "twice", "UTF-16", "empty"],
)
@pytest.mark.parametrize("member", ["manifest", "program", "provenance"])
def test_a_hostile_document_is_refused(member, text):
    if member == "manifest":
        assert_refused(archived([*({**members(), "manifest.json": text}).items()]))
    else:
        assert_refused(signed(**{member: text}))


def test_a_later_version_says_so():
    manifest = json.loads(members()["manifest.json"]) | {"version": 4}
    changed = {**members(), "manifest.json": digest.canonical(manifest)}
    with pytest.raises(GraphError, match="a bundle of version 4; this npumake reads 3"):
        Bundle.from_bytes(archived([*changed.items()]))
