"""A bundle with CPU subgraphs, mutated: one clear error, or it computes. Never a crash of ours.

What was changed with the manifest left as it was is refused. What a stranger signs anew, with true
digests, reaches the deeper checks: it is refused, or another program that runs.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import onnx
import pytest

from malformed.runner import Server
from malformed.test_malformed_bundles import parts
from npumake import digest
from npumake.bundle.archive import Bundle, zipped
from npumake.digest import Json
from npumake.engine.lower import lowered
from npumake.engine.subgraphs import joined
from npumake.graph import parse_text

GRAPH = """agraph (float[1,2,4,4] x) => (float[1,8] y, float[1,2,4,4] v)
    <float s = {0.25}, int8 o = {0}, int64[2] flat = {1, -1}, int8[8,8] w = {WEIGHTS}> {
    a = Exp(x)  b = Neg(a)
    q = QuantizeLinear(b, s, o)  d = DequantizeLinear(q, s, o)
    v = Erf(d)  left = Sin(d)
    pooled = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(left)
    row = Reshape(pooled, flat)
    p = QuantizeLinear(row, s, o)  e = DequantizeLinear(p, s, o)
    wd = DequantizeLinear(w, s, o)
    m = MatMul(e, wd)
    r = QuantizeLinear(m, s, o)  y = DequantizeLinear(r, s, o) }""".replace(
    "WEIGHTS", ", ".join(str(i % 7 - 3) for i in range(64))
)
DATA = Bundle("rdk-x5", joined(lowered(parse_text(GRAPH), "half_even")), {}).to_bytes()
MEMBERS = parts(DATA)
CPU = [name for name in MEMBERS if name.startswith("cpu/")]
FIRST = CPU[0]  # b = Neg(Exp(x))
SHAPE = "[1,2,4,4]"

Mutant = Callable[[], bytes]
BENCH = ("bench", "m.hybrid", "--frame_count", "1")
VERBS = (BENCH, ("info", "m.hybrid"), ("perf", "m.hybrid"), ("modify", "m.hybrid"))


def signed(**changed: bytes | None) -> bytes:
    """Other members, and a manifest that tells their true digests; None leaves one out."""
    by_key = {name.replace("/", "__").rpartition(".")[0]: name for name in MEMBERS}
    given = MEMBERS | {by_key.get(key, key): data for key, data in changed.items()}
    held = {name: data for name, data in given.items() if data is not None}
    manifest = json.loads(held["manifest.json"])
    manifest["sha256"] = {n: digest.of_bytes(d) for n, d in held.items() if n != "manifest.json"}
    return zipped({**held, "manifest.json": digest.canonical(manifest)})


def with_model(text: str) -> Mutant:
    """Another first CPU subgraph, in the place of one that reads x and makes b."""
    return lambda: signed(cpu__subgraph_0=model(text).SerializeToString())


def model(text: str) -> onnx.ModelProto:
    header = '<ir_version: 9, opset_import: ["" : 17, "mine" : 1]> agraph '
    return onnx.parser.parse_model(header + text)


def outside(place: str, **more: str) -> bytes:
    made = model(f"(float{SHAPE} x) => (float{SHAPE} b) <float[1] w = {{1}}> {{ b = Mul(x, w) }}")
    weight = made.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": place, **more}.items():
        weight.external_data.add(key=key, value=value)
    return signed(cpu__subgraph_0=made.SerializeToString())


def weighing(dims: list[int], data: bytes = b"") -> bytes:
    made = model(f"(float{SHAPE} x) => (float{SHAPE} b) <float[1] w = {{1}}> {{ b = Mul(x, w) }}")
    made.graph.initializer[0].CopyFrom(
        onnx.TensorProto(name="w", dims=dims, data_type=1, raw_data=data)
    )
    return signed(cpu__subgraph_0=made.SerializeToString())


def program(route: tuple[str | int, ...], new: Json) -> Mutant:
    def mutated() -> bytes:
        document = json.loads(MEMBERS["program.json"])
        *above, last = route
        inside = document
        for key in above:
            inside = inside[key]
        inside[last] = new
        return signed(program=digest.canonical(document))

    return mutated


def flipped(name: str, at: int) -> Mutant:
    def mutated() -> bytes:
        changed = bytearray(MEMBERS[name])
        changed[at] ^= 1 << at % 8
        return signed(**{name.replace("/", "__").rpartition(".")[0]: bytes(changed)})

    return mutated


def swapped(a: str, b: str) -> Mutant:
    return lambda: zipped({**MEMBERS, a: MEMBERS[b], b: MEMBERS[a]})


def sized(index: int, size: int) -> Mutant:
    """The directory says of a member that it has `size` bytes."""

    def mutated() -> bytes:
        at = -1
        for _ in range(index + 1):
            at = DATA.index(b"PK\1\2", at + 1)
        return DATA[: at + 20] + struct.pack("<II", size, size) + DATA[at + 28 :]

    return mutated


ENDLESS = """(float[1,2,4,4] x) => (float[1,2,4,4] b) <int64 n = {TURNS}, bool go = {1}> {
    b = Loop(n, go, x) <body = t (int64 i, bool c, float[1,2,4,4] a) => (bool d, float[1,2,4,4] e)
        { d = Identity(c)  e = Neg(a) }> }"""
WIDE = "(float[1,2,4,4] x) => (float[1,2,4,4] b) <int64[1] n = {SIZE}, float[1] w = {1}> "
MODELS: dict[str, Mutant] = {
    "no bytes": lambda: signed(cpu__subgraph_0=b""),
    "a text": lambda: signed(cpu__subgraph_0=b"hello"),
    "half a model": lambda: signed(cpu__subgraph_0=MEMBERS[FIRST][: len(MEMBERS[FIRST]) // 2]),
    "weights up the folders": lambda: outside("../../etc/passwd"),
    "weights at a root": lambda: outside("/etc/passwd", length="4"),
    "weights in the bundle": lambda: outside("weights.bin", offset="0", length="4"),
    "weights of a device": lambda: outside("/dev/zero", length=str(1 << 40)),
    "a weight of a terabyte": lambda: weighing([1 << 38]),
    "a weight of negative size": lambda: weighing([-1], bytes(4)),
    "a weight whose product overflows": lambda: weighing([1 << 33, 1 << 33]),
    "a loop of 2^62 turns": with_model(ENDLESS.replace("TURNS", str(1 << 62))),
    "a loop within a loop's bounds": with_model(ENDLESS.replace("TURNS", "3")),
    "an expansion of 400 GB": with_model(
        WIDE.replace("SIZE", "100000000000") + "{ z = Expand(w, n) s = ReduceSum(z) b = Add(x, s) }"
    ),
    "a constant of 400 GB": with_model(
        WIDE.replace("SIZE", "100000000000")
        + "{ z = ConstantOfShape(n) s = ReduceSum(z) b = Add(x, s) }"
    ),
    "a shape that x says": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) <float[1] w = {{1}}, int64[1] one = {{1}}> "
        "{ f = ReduceMax<keepdims = 0>(x)  g = Cast<to = 7>(f)  n = Reshape(g, one) "
        "  z = Expand(w, n)  s = ReduceSum(z)  b = Add(x, s) }"
    ),
    "a division of integers by nothing": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) <int64[1] n = {{0}}> "
        "{ i = Cast<to = 7>(x)  j = Div(i, n)  b = Cast<to = 1>(j) }"
    ),
    "an index that is not there": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) <int64[1] n = {{77}}> "
        "{ g = Gather<axis = 3>(x, n)  s = ReduceSum(g)  b = Add(x, s) }"
    ),
    "an operator of nobody": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) {{ b = mine.Anything(x) }}"
    ),
    "an operator there is not": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) {{ b = Anything(x) }}"
    ),
    "another input": with_model(f"(float{SHAPE} z) => (float{SHAPE} b) {{ b = Neg(z) }}"),
    "an input more": with_model(
        f"(float{SHAPE} x, float[1] k) => (float{SHAPE} b) {{ b = Add(x, k) }}"
    ),
    "another output": with_model(f"(float{SHAPE} x) => (float{SHAPE} c) {{ c = Neg(x) }}"),
    "another shape": with_model("(float[9] x) => (float[9] b) { b = Neg(x) }"),
    "a shape it does not make": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) {{ b = GlobalMaxPool(x) }}"
    ),
    "another type": with_model(f"(double{SHAPE} x) => (double{SHAPE} b) {{ b = Neg(x) }}"),
    "an open shape": with_model("(float[N,2,4,4] x) => (float[N,2,4,4] b) { b = Neg(x) }"),
    "a model left out": lambda: signed(cpu__subgraph_0=None),
    "a model more": lambda: signed(**{"cpu/subgraph_9.onnx": MEMBERS[FIRST]}),
    "a model of another name": lambda: signed(
        cpu__subgraph_0=None, **{"cpu/subgraph_00.onnx": MEMBERS[FIRST]}
    ),
    "a model up the folders": lambda: signed(**{"cpu/../../a.onnx": MEMBERS[FIRST]}),
    "two models that changed places": lambda: signed(
        cpu__subgraph_0=MEMBERS[CPU[1]], cpu__subgraph_1=MEMBERS[CPU[0]]
    ),
    "a model that is NaN's": with_model(
        f"(float{SHAPE} x) => (float{SHAPE} b) {{ a = Abs(x)  n = Neg(a)  b = Log(n) }}"
    ),
}
PROGRAMS: dict[str, Mutant] = {
    "a model of no file": program(("instructions", 0, "constants", "model"), "cpu/none.onnx"),
    "a model in the weights": program(("instructions", 0, "constants", "model"), [0, "int8", [4]]),
    "no model": program(("instructions", 0, "constants"), {}),
    "two models": program(("instructions", 0, "constants"), {"model": FIRST, "other": FIRST}),
    "a model twice": program(("instructions", 0, "constants", "model"), CPU[1]),
    "a kernel that has a model": program(("instructions", 0, "op"), "conv"),
    "another kernel": program(("instructions", 1, "op"), "dequantize"),
    "a kernel of nobody": program(("instructions", 1, "op"), "open"),
    "a tensor of an exabyte": program(("tensors", "q", "shape"), [1 << 60]),
    "a tensor of another shape": program(("tensors", "q", "shape"), [1, 2, 4, 5]),
    "a tensor of text": program(("tensors", "b", "dtype"), "str"),
    "a tensor of another type": program(("tensors", "b", "dtype"), "float64"),
    "an output that is an input": program(("outputs", 0), "x"),
    "an input twice": program(("inputs",), ["x", "x"]),
    "a scale of nothing": program(("tensors", "q", "scale"), 0.0),
    "a scale below nothing": program(("tensors", "q", "scale"), -1.0),
    "a zero point far away": program(("tensors", "q", "zero_point"), 1 << 62),
    "weights cut off": lambda: signed(weights=MEMBERS["weights.bin"][:-1]),
    "weights and more": lambda: signed(weights=MEMBERS["weights.bin"] + bytes(64)),
    "weights of other bytes": lambda: signed(weights=MEMBERS["weights.bin"][::-1]),
}


def seeded(name: str, count: int) -> Iterator[int]:
    yield from sorted(random.Random(name).sample(range(len(MEMBERS[name])), count))


CONTAINERS: dict[str, Mutant] = {
    **{f"swapped {a} {b}": swapped(a, b) for a, b in combinations(MEMBERS, 2)},
    **{f"cut at {n}": (lambda n=n: DATA[:n]) for n in range(1, len(DATA), len(DATA) // 20)},
    **{
        f"member {index} of {size}": sized(index, size)
        for index in range(len(MEMBERS))
        for size in (0, 1 << 20, 0xFFFFFFF0)
    },
}
FLIPPED = {
    f"{name} flipped at {at}": flipped(name, at)
    for name in (*CPU, "program.json")
    for at in seeded(name, 12)
}


def outcome(server: Server, folder: Path, mutant: Mutant, command: tuple[str, ...]) -> int:
    """The exit code; of what is refused, one error and no traceback."""
    (folder / "m.hybrid").write_bytes(mutant())
    found = server.run(folder, command)
    assert "Traceback" not in found.output, (command, found.output)
    assert found.code in (0, 3), (command, found)
    assert found.output.count("error: ") == (found.code == 3), found.output
    return found.code


def test_there_are_a_hundred_and_more() -> None:
    assert len(CONTAINERS) + len(MODELS) + len(PROGRAMS) + len(FLIPPED) > 150
    assert Bundle.from_bytes(DATA).to_bytes() == DATA
    assert signed() == DATA


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_that_was_changed_is_refused(name: str, server: Server, tmp_path: Path) -> None:
    assert outcome(server, tmp_path, CONTAINERS[name], BENCH) == 3


SOUND = {"a loop within a loop's bounds"}


@pytest.mark.slow(cases=18)
@pytest.mark.parametrize("name", MODELS)
def test_a_stranger_s_cpu_model_is_refused(name: str, server: Server, tmp_path: Path) -> None:
    wanted = 0 if name in SOUND else 3
    assert outcome(server, tmp_path, MODELS[name], BENCH) == wanted
    for command in VERBS[1:]:
        outcome(server, tmp_path, MODELS[name], command)


@pytest.mark.slow(cases=36)
@pytest.mark.parametrize("name", {**PROGRAMS, **FLIPPED})
def test_a_stranger_s_program_is_refused_or_runs(name: str, server: Server, tmp_path: Path) -> None:
    for command in VERBS:
        outcome(server, tmp_path, {**PROGRAMS, **FLIPPED}[name], command)


def test_a_bundle_unchanged_computes(server: Server, tmp_path: Path) -> None:
    for command in VERBS:
        assert outcome(server, tmp_path, lambda: DATA, command) == 0
