"""Faults planted in dumps of LiteRT and IREE: is the first node named, and the cause?

    NPUMAKE_SHARED=../shared python benchmarks/dump_faults.py [--faults 3] [--seed 0]
        [--models TEXT] [--boards litert iree] [--keep 1.0]

A dump is every tensor that the runtime makes of a real model's file, as arrays. A fault changes one
of them, drawn by the seed. In half of the cases what lies behind it is computed from the changed
tensor; in the others the dump alone is wrong. `rebuilt` faults are in the file: one tensor has
another scale or zero point, and LiteRT computes with it. First each dump is compared as it is: none
of it may diverge.

Named, and explained, of the kinds scale, layout, zero_point, width and clipped:

    LiteRT, five models, nine dumps, --faults 2 --seed 7     128 and 126 of 128
    three in ten tensors dumped, resnet8 on both, --faults 3  59 and 59 of 60
    IREE, resnet8 and vww_96, --faults 2 --seed 3             24 and 23 of 24

The two misses of LiteRT, an output of two values, are explained since; the line is of before. That
of IREE is 64 values of a few codes each, which four bits hardly change. A dump of few tensors does
not tell that one of them alone is channels first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from faults import SHARED, feeds, float_graph

from npumake.bundle.program import Program, Tensor
from npumake.compilers.backends import built
from npumake.compilers.tflite import tflite_file
from npumake.data.samples import Samples
from npumake.debug.dumps.compare import DumpComparison, compare_dump, read_dump
from npumake.debug.dumps.inputs import feeding_of
from npumake.debug.dumps.matching import names_of
from npumake.debug.layer_by_layer import _codes_of, litert_tensors
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.brought_grids import carries_grids, with_own_grids
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.runtime.iree import IreeSession
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

MODELS = (
    "classification/mobilenet_v1_0.25_224_float.tflite",
    "classification/cifar10_resnet8_float.tflite",
    "classification/vww_96_int8.tflite",
    "audio/kws_tiny_float.tflite",
    "detection/yolox_person_192.onnx",
)
IREE_MODELS = MODELS[1:3]
SAMPLES = 4
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Board:
    """A runtime's own tensors of one sample, by the names of its file."""

    model: str
    types: str
    runtime: str
    program: Program
    graph: Graph
    samples: Samples
    dump: Mapping[str, np.ndarray]


@cache
def prepared(model: str, types: str) -> tuple[Graph, Program, Samples]:
    target = read_target("tflite")
    graph = float_graph(model)
    given = feeds(model, graph)[:SAMPLES]
    asked = Quantization(types={"*": "int16"} if types == "int16" else {})
    if carries_grids(graph) and types == "int8":
        found = quantized(with_own_grids(graph, target, asked), target)
    else:
        recipe = ranges_by_method(
            graph, observe(graph, given), Calibration("max"), symmetric=types == "int16"
        )
        found = quantized(calibrated_with(graph, recipe, target, asked), target)
    program = lowered(found, target.rounding, target.runnable)
    names = tuple(f"{index}.npy" for index in range(len(given)))
    return found, program, Samples(names, given.__getitem__)


@cache
def board(model: str, types: str, runtime: str) -> Board:
    graph, program, samples = prepared(model, types)
    make = by_litert if runtime == "litert" else by_iree
    dump = make(program, graph, samples.read(0))
    return Board(model, types, runtime, program, graph, samples, dump)


def by_litert(program: Program, graph: Graph, fed: Mapping[str, np.ndarray]) -> Arrays:
    """Every tensor of the file, constants among them."""
    names = [name for step in program.instructions for name in step.outputs]
    ours = dict(zip(names, ReferenceSession(program).run(names, fed), strict=True))
    codes = {name: ours.get(_codes_of(program, name), fed[name]) for name in fed}
    return litert_tensors(tflite_file(program, graph), codes, fed)


def by_iree(program: Program, graph: Graph, fed: Mapping[str, np.ndarray]) -> Arrays:
    """The tensors of codes, each made an output of the file."""
    inner = [s.outputs[0] for s in program.instructions if _is_inner(s.outputs[0], program)]
    watched = replace(program, outputs=(*program.outputs, *inner))
    data = built(watched, graph, read_target("iree-cpu"), {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.vmfb")
        path.write_bytes(data)
        session = IreeSession(path)
        given = {p.name: _laid(fed[p.name], p.shape) for p in session.inputs}
        codes = session._run(*(port.codes(given[port.name]) for port in session._inputs))
        return {
            port.name: np.array(values.to_host())
            for port, values in zip(session._outputs, codes, strict=True)
        }


def _laid(x: np.ndarray, shape: Sequence[int | str | None]) -> np.ndarray:
    return x if x.shape == tuple(shape) else np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def _is_inner(name: str, program: Program) -> bool:
    shown = {step.inputs[0] for step in program.instructions if step.op == "dequantize"}
    fed = {step.outputs[0] for step in program.instructions if step.op in ("quantize", "onnx")}
    grid = program.tensors[name]
    return grid.scale is not None and name not in shown | fed and name not in program.outputs


# -- faults: codes as they lie in the file, the grid, random numbers → what is dumped in their place


def scale(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    factor = float(rng.choice([0.25, 0.5, 0.7, 0.8, 1.25, 1.5, 2.0, 3.0]))
    return _codes((x.astype(np.float64) - grid.zero_point) * factor + grid.zero_point, grid)


def real_scale(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Real numbers, made with the scale of something else."""
    real = (x.astype(np.float32) - grid.zero_point) * np.float32(grid.scale or 1.0)
    return real * np.float32(rng.uniform(1.1, 4.0) ** float(rng.choice([-1, 1])))


def zero_point(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    shifts = [int(rng.integers(1, 40)), -int(rng.integers(1, 40)), -grid.zero_point or 7]
    if x.dtype == np.int8 and rng.random() < 0.25:
        return x ^ np.int8(-128)
    return _codes(x.astype(np.float64) + int(rng.choice(shifts)), grid)


def layout(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Another order in memory, in the file's shape or in its own."""
    if x.ndim != 4:
        return np.ascontiguousarray(x.T).reshape(x.shape)
    order = [(0, 3, 1, 2), (0, 2, 1, 3), (0, 3, 2, 1)][int(rng.integers(3))]
    moved = np.ascontiguousarray(x.transpose(order))
    return moved if order == (0, 3, 1, 2) and rng.random() < 0.3 else moved.reshape(x.shape)


def channel_order(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    count = x.shape[-1]
    order = np.arange(count)[::-1] if rng.random() < 0.5 else rng.permutation(count)
    return np.ascontiguousarray(x[..., order])


def width(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    if x.dtype == np.int8:
        return x >> 4 << 4
    way = int(rng.integers(4))
    if way == 0:
        return x >> 8 << 8
    if way == 1:
        return (x >> 8).astype(np.int8)
    step = 256.0 if way == 2 else 32767 / 127
    return _codes(np.clip(np.rint(x / step), -128, 127) * step, grid)


def clipped(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    part, zero = float(rng.choice([0.25, 0.5, 0.7])), grid.zero_point
    low, high = (zero + (int(end) - zero) * part for end in (x.min(), x.max()))
    return _codes(np.clip(x, int(low), int(high)).astype(np.float64), grid)


def bias(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    return _codes(x + np.rint(rng.normal(0, 12, x.shape[-1])), grid)


def byte_order(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    return x.byteswap()


def uninitialized(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    return np.zeros_like(x)


def _codes(values: np.ndarray, grid: Tensor) -> np.ndarray:
    limits = np.iinfo(grid.dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(grid.dtype)


Fault = Callable[[np.ndarray, Tensor, np.random.Generator], np.ndarray]
JUDGED: Mapping[str, Fault] = {
    "scale": scale,
    "real scale": real_scale,
    "layout": layout,
    "zero_point": zero_point,
    "width": width,
    "clipped": clipped,
}
OTHERS: Mapping[str, Fault] = {
    "channel_order": channel_order,
    "bias": bias,
    "byte_order": byte_order,
    "uninitialized": uninitialized,
}
FAULTS = {**JUDGED, **OTHERS}
LAYERS = ("conv", "add_twice", "fully_connected_twice")
REBUILT = ("rebuilt scale", "rebuilt zero_point")
KIND = {"real scale": "scale", "rebuilt scale": "scale", "rebuilt zero_point": "zero_point"}


def planted(at: Board, kind: str, rng: np.random.Generator) -> tuple[str, Arrays] | None:
    """The tensor that is wrong, and the whole dump; None where the drawn one shows no fault."""
    spots = [name for name in _spots(at) if _takes(kind, at, name)]
    if not spots:
        return None
    name = str(rng.choice(spots))
    grid = at.program.tensors[name]
    right = at.dump[name]
    if kind in REBUILT:
        dump = _rebuilt(at, name, kind, rng)
        return (name, dump) if _shows(dump[name], right) else None
    wrong = FAULTS[kind](right, grid, rng)
    if not _shows(wrong, right):
        return None
    if wrong.shape != right.shape or wrong.dtype != right.dtype or rng.random() < 0.5:
        return name, {**at.dump, name: wrong}
    return name, {**at.dump, **_behind(at, name, wrong)}


def _shows(wrong: np.ndarray, right: np.ndarray) -> bool:
    """Whether a fault changed more than a rounding does."""
    if wrong.shape != right.shape or wrong.dtype != right.dtype:
        return True
    apart = np.abs(wrong.astype(np.float64) - right)
    return bool((apart > 1).mean() >= 0.02 or (apart > 0).mean() >= 0.5)


def _spots(at: Board) -> list[str]:
    names = (name for step in at.program.instructions for name in step.outputs)
    return [n for n in names if n in at.dump and at.program.tensors[n].scale is not None]


def _takes(kind: str, at: Board, name: str) -> bool:
    x = at.dump[name]
    if x.dtype != at.program.tensors[name].dtype:
        return False
    if kind in ("layout", "channel_order", "bias"):
        return x.ndim == 4 and x.shape[1] > 1 and x.shape[3] > 1
    if kind in REBUILT:  # the grids of other operators are fixed
        return name in {s.outputs[0] for s in at.program.instructions if s.op in LAYERS}
    return kind != "byte_order" or x.dtype == np.int16


def _behind(at: Board, name: str, wrong: np.ndarray) -> Arrays:
    """What the program makes of the wrong tensor, as the file has it."""
    steps, inner = at.program.instructions, [n for s in at.program.instructions for n in s.outputs]
    session = ReferenceSession(at.program)
    values = dict(at.samples.read(0))
    values |= dict(
        zip(inner, ExactSession(at.program, watched=inner).run(inner, values), strict=True)
    )
    changed, made = {name}, {name: wrong}
    values[name] = _ours(wrong, at.dump[name], values[name])
    for step in steps:
        if changed & set(step.inputs) and not changed & set(step.outputs):
            results = session.execute(step, [values[n] for n in step.inputs])
            for output, result in zip(step.outputs, results, strict=True):
                changed.add(output)
                if output in at.dump:
                    made[output] = _theirs(result, at.dump[output], values[output])
                values[output] = result
    return made


def _order(theirs: np.ndarray, ours: np.ndarray) -> tuple[int, ...]:
    """Of the file's axes: channels last where that is the shape."""
    last = (0, 2, 3, 1) if ours.ndim == 4 else tuple(range(ours.ndim))
    return last if ours.transpose(last).shape == theirs.shape else tuple(range(ours.ndim))


def _ours(wrong: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    return wrong.transpose(np.argsort(_order(theirs, ours))).reshape(ours.shape)


def _theirs(result: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    if theirs.dtype != result.dtype:
        return theirs
    return np.ascontiguousarray(result.transpose(_order(theirs, ours))).reshape(theirs.shape)


def _rebuilt(at: Board, name: str, kind: str, rng: np.random.Generator) -> Arrays:
    """LiteRT's own tensors of a file in which this one has another grid."""
    grid = at.program.tensors[name]
    if kind == "rebuilt scale":
        other = replace(grid, scale=(grid.scale or 1.0) * float(rng.choice([0.5, 0.8, 1.5, 2.0])))
    else:
        other = replace(
            grid,
            zero_point=int(np.clip(grid.zero_point + int(rng.choice([-30, 9, 30])), -128, 127)),
        )
    program = replace(at.program, tensors={**at.program.tensors, name: other})
    return by_litert(program, at.graph, at.samples.read(0))


def judged(at: Board, dump: Mapping[str, np.ndarray], rng: np.random.Generator) -> DumpComparison:
    """The dump written as files, and compared."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, dump, int(rng.integers(3)))
        found = read_dump(folder, names_of(at.program))
        return compare_dump(at.program, found, feeding_of(at.samples, None), strict=True)


def written(folder: Path, dump: Mapping[str, np.ndarray], way: int) -> None:
    """As one archive, as files whose names have underscores, or with numbers for names."""
    if way == 0:
        arrays: dict[str, Any] = {name.replace("/", "|"): x for name, x in dump.items()}
        np.savez(folder / "dump.npz", **arrays)
        return
    rows = ["name,file,shape,dtype"]
    for index, (name, x) in enumerate(dump.items()):
        if way == 1 and len(name) < 240:
            np.save(folder / f"{name.replace('/', '_').replace(':', '_')}.npy", x)
            continue
        x.tofile(folder / f"t{index}.bin")
        rows.append(f'"{name}",t{index},{"x".join(map(str, x.shape))},{x.dtype}')
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")


@dataclass(frozen=True)
class Outcome:
    kind: str
    at: Board
    tensor: str
    found: DumpComparison

    @property
    def is_named(self) -> bool:
        return self.found.first is not None and self.found.first.tensor == self.tensor

    @property
    def is_explained(self) -> bool:
        known = self.found.causes
        return bool(self.is_named and known and known[0].kind == KIND.get(self.kind, self.kind))


def thinned(
    dump: Mapping[str, np.ndarray], name: str, keep: float, rng: np.random.Generator
) -> Arrays:
    """That tensor and a share of the others."""
    kept = [each for each in dump if each == name or rng.random() < keep]
    return {each: dump[each] for each in kept}


def outcomes(
    at: Board, kinds: Mapping[str, int], seed: int, keep: float = 1.0
) -> Iterator[Outcome]:
    """So many faults of each kind in one board's dump, of which it keeps a share."""
    rng = np.random.default_rng([seed, len(at.model), len(at.types), len(at.runtime)])
    for kind, count in kinds.items():
        done = 0
        for _ in range(8 * count):
            case = planted(at, kind, rng) if done < count else None
            if case is not None:
                done += 1
                dump = thinned(case[1], case[0], keep, rng)
                yield Outcome(kind, at, case[0], judged(at, dump, rng))


def boards(models: tuple[str, ...], runtimes: list[str]) -> Iterator[Board]:
    for model in models:
        for types in ("int8", "int16") if "litert" in runtimes else ():
            if (model, types) != (MODELS[4], "int16"):
                yield board(model, types, "litert")
        if "iree" in runtimes and model in IREE_MODELS:
            yield board(model, "int8", "iree")


def told_of(at: Board) -> str:
    """What is said of a dump without a fault."""
    good = judged(at, at.dump, np.random.default_rng(0))
    place = f"{at.model} {at.types} {at.runtime}: {len(good.rows)} tensors"
    if good.first is not None:
        return f"{place}, FALSE ALARM at {good.first.node}: {good.causes[:1]}"
    worst = max((row.difference.worst for row in good.rows), default=0.0)
    return f"{place} agree, at most {worst:g} codes apart"


def miss(one: Outcome) -> str:
    first, shape = one.found.first, one.at.program.tensors[one.tensor].shape
    named = "nothing" if first is None else first.tensor[-40:]
    causes = ", ".join(f"{cause.kind} {cause.score:.2f}" for cause in one.found.causes[:3])
    place = f"{one.at.model} {one.at.types} {one.at.runtime}"
    return f"    missed: {one.kind} in {place} at {one.tensor[-40:]} {shape}: {named}; {causes}"


def print_scores(found: list[Outcome]) -> None:
    print(f"\n{'kind':<22}{'faults':>8}{'node':>8}{'cause':>8}")
    for kind in dict.fromkeys(one.kind for one in found):
        alike = [one for one in found if one.kind == kind]
        figures = (len(alike), sum(o.is_named for o in alike), sum(o.is_explained for o in alike))
        print(f"{kind:<22}{''.join(f'{figure:>8}' for figure in figures)}")
    for words, kinds in (("judged", (*JUDGED, *REBUILT)), ("all", (*FAULTS, *REBUILT))):
        alike = [one for one in found if one.kind in kinds]
        named, explained = (
            100 * sum(flags) / max(len(alike), 1)
            for flags in ([o.is_named for o in alike], [o.is_explained for o in alike])
        )
        print(f"{words:<22}{len(alike):>8}{named:>7.1f}%{explained:>7.1f}%")


def main() -> None:
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--faults", type=int, default=2, help="of each kind in each dump")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=float, default=1.0, help="share of the tensors dumped")
    parser.add_argument("--models", default="", help="those with this in their name")
    parser.add_argument("--boards", nargs="+", default=["litert", "iree"])
    given = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit("shared/data is not here: set NPUMAKE_SHARED")
    found: list[Outcome] = []
    for at in boards(tuple(model for model in MODELS if given.models in model), given.boards):
        print(told_of(at), flush=True)
        rebuilt = REBUILT if (at.types, at.runtime) == ("int8", "litert") else ()
        kinds = dict.fromkeys((*FAULTS, *rebuilt), given.faults)
        for one in outcomes(at, kinds, given.seed, given.keep):
            found.append(one)
            if not one.is_explained:
                print(miss(one), flush=True)
    print_scores(found)


if __name__ == "__main__":
    main()
