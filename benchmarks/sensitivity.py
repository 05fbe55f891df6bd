"""The gain of reusing the float model: CPU seconds of brute force over those of `sensitivities`.

    NPUMAKE_SHARED=../shared python benchmarks/sensitivity.py [--models mobilenet] [--samples 1 4]

Both run the same probes of every node of real models, and give the same figures. Brute force
builds, for every node, the model that quantizes only this node, and runs it over all samples.

    kept       brute force that computes the float outputs once
    whole      brute force that computes them for every node, as when two model files are compared
    stock      the script of stock packages beside this one, with float outputs kept, for as many
               nodes
    limit      `whole`, if probes only ran the nodes behind theirs: no set-up, borders or comparison

All of these use one thread. The last figures are `whole` on the clock, with equal threads: against
a `plain` script, node by node, whose sessions use all threads by onnxruntime's default, and against
`workers` of one thread with a node each. Other work on the machine hardly changes a ratio of CPU
seconds, but it changes one of the clock. `off` is the largest difference of a cosine. Two rankings
are the same if nodes in another order are less than TIE apart.

`whole`, in brackets `limit`, and `whole` on the clock against a plain script and against workers,
on two idle cores:

    samples                  1                      16                     100
    resnet8      5.7 (64)  6.3 5.0      4.5 (8.0) 4.6 3.9      3.8 (5.7)  6.4 4.5
    mobilenet     11 (53)   14  11      5.3 (5.3) 7.7 8.2      4.6 (5.0)  5.4 4.4
    squeezenet   8.0 (13)   11  10      3.9 (4.0) 4.1 3.9
    ultraface     19 (62)   19  20      8.8 (20)  8.7 5.8
    yolox         38 (105)  52  36

(100 samples, and yolox, were measured before borders were placed where the fewest values cross.)
The figures vary from run to run, most on the clock: for resnet8, CPU ratios were 5.7 and 7.4 for
one sample, 4.5 and 4.4 for 16. On cores with AMX, also before that, for 1 and for 16 samples:

    resnet8      4.8 (79)  3.8 3.4      3.7 (10)  3.0 2.6
    mobilenet    9.6 (59)  7.7 7.9      5.7 (9.6) 6.3 5.3
    squeezenet   9.2 (19)  7.6 9.4      3.9 (5.1) 4.4 3.9
    ultraface     18 (57)   19  15      8.8 (18)  9.0 6.9

The part behind a node is half of the model on average. For many samples `limit` is therefore about
four, and about two if the float outputs are kept: each run of a convolution costs the same in brute
force. Few samples gain more, because no session is set up for a single probe.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
import stock

from npumake.data.samples import Samples
from npumake.debug.calibration_nodes import with_only, without
from npumake.debug.network import SwitchedNetwork
from npumake.debug.probing import Sums
from npumake.debug.sensitivity import ModelUnderTest, groups_of, ranked, sensitivities
from npumake.engine.float_session import FloatSession, float_session
from npumake.engine.ort import OrtSession
from npumake.engine.parallel import side_by_side
from npumake.frontends import read_model
from npumake.graph import Graph, shape, upgraded
from npumake.kernels.measure import Agreement, agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
MODELS = {
    "mobilenet": "classification/mobilenet_v1_0.25_224_float.tflite",
    "squeezenet": "classification/squeezenet1.1_winml_fp32_DERIVED.onnx",
    "resnet8": "classification/cifar10_resnet8_float.tflite",
    "ultraface": "detection/ultraface_slim320.onnx",
    "yolox": "detection/yolox_person_192.onnx",
}


TIE = 1e-6


class Way(NamedTuple):
    """How brute force runs models: sessions of so many threads, so many nodes at once."""

    threads: int
    at_once: int


ALONE = Way(1, 1)


class Spent(NamedTuple):
    """Seconds of CPU, and on the clock."""

    cpu: float = 0.0
    clock: float = 0.0


def patient(name: str, count: int) -> ModelUnderTest:
    file = SHARED / "models" / MODELS[name]
    graph = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    rng, (given,) = np.random.default_rng(0), graph.inputs
    noise = [rng.uniform(-1, 1, shape(given)).astype(np.float32) for _ in range(count)]
    feeds = [{str(given.name): one} for one in noise]
    recipe = ranges_by_method(graph, observe(graph, feeds), Calibration("max"), True)
    made = calibrated_with(graph, recipe, read_target("rdk-x5"), DEFAULT)
    return ModelUnderTest(made, Samples(tuple(map(str, range(count))), lambda index: feeds[index]))


def spent(what: Callable[[], dict[str, Sums]], times: int) -> tuple[Spent, dict[str, Sums]]:
    """The least of so many times."""
    found: dict[str, Sums] = {}
    every = []
    for _ in range(times):
        start = time.process_time(), time.perf_counter()
        found = what()
        every.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return Spent(*map(min, zip(*every, strict=True))), found


def brute_force(examined: ModelUnderTest, real: Graph, way: Way = ALONE) -> dict[str, Sums]:
    meant = _answers(real, examined, way.threads)

    def one(group: tuple[str, ...]) -> Sums:
        chosen = [node for node in examined.nodes if node.name in group]
        return _compared(meant, _answers(with_only(real, chosen), examined, way.threads))

    groups = groups_of(examined, "node")
    return dict(zip(groups, side_by_side(one, groups.values(), way.at_once), strict=True))


def float_again(examined: ModelUnderTest, real: Graph, way: Way = ALONE) -> dict[str, Sums]:
    """What brute force spends when the float model runs for every node."""
    nodes = groups_of(examined, "node")
    list(side_by_side(lambda _: _answers(real, examined, way.threads), nodes, way.at_once))
    return {}


def behind(examined: ModelUnderTest) -> float:
    """Seconds of CPU for one float pass, and for every node what lies behind it."""
    network, wanted = SwitchedNetwork(examined.calibrated, examined.nodes), dict.fromkeys
    floats, by_name = network.floats, {one.name: one for one in examined.nodes}
    read = wanted(n for p in floats for n in p.reads if not network.written.is_constant(n))
    answers = wanted(network.outputs)
    whole = OrtSession(network.written.model(floats, wanted([*read, *answers])), fusion="floats")
    values = [
        dict(zip(whole.output_names, whole.run(None, f), strict=True)) for f in examined.samples
    ]
    spent = _ran(OrtSession(network.written.model(floats, answers), fusion="floats"), values)
    for group in groups_of(examined, "node").values():
        seeds = network.change([by_name[name] for name in group]).seeds
        changed: set[str] = set()
        touched = []
        for number, piece in enumerate(floats):
            if number in seeds or not changed.isdisjoint(piece.reads):
                touched.append(piece)
                changed.update(piece.makes)
        made = [name for name in answers if name in changed]
        spent += _ran(OrtSession(network.written.model(touched, made), fusion="floats"), values)
    return spent


def _ran(session: OrtSession, values: list[dict[str, np.ndarray]]) -> float:
    feeds = [{name: each[name] for name in session.input_names} for each in values]
    session.run(None, feeds[0])
    start = time.process_time()
    for feed in feeds:
        session.run(None, feed)
    return time.process_time() - start


def probes(examined: ModelUnderTest, at_once: int) -> dict[str, Sums]:
    forgetful = ModelUnderTest(examined.calibrated, examined.samples, at_once=at_once)
    return sensitivities(forgetful, groups_of(forgetful, "node"))


Answers = list[list[np.ndarray]]  # by sample and output


def _answers(graph: Graph, examined: ModelUnderTest, threads: int) -> Answers:
    """Of threads that wait as onnxruntime's do where nobody says otherwise."""
    if threads == 1:
        session: FloatSession = float_session(graph, fusion="floats")
        return [session.run(None, feed) for feed in examined.samples]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    cpu = ["CPUExecutionProvider"]
    whole = onnxruntime.InferenceSession(graph.to_bytes(), options, providers=cpu)
    return [whole.run(None, feed) for feed in examined.samples]


def _compared(meant: Answers, made: Answers) -> Sums:
    sums = [Agreement()] * len(meant[0])
    for known, found in zip(meant, made, strict=True):
        sums = [s + agreement(a, b) for s, a, b in zip(sums, known, found, strict=True)]
    return tuple(sums)


def clocked(
    examined: ModelUnderTest, real: Graph, way: Way, times: int
) -> tuple[Spent, Spent, dict[str, Sums]]:
    """Brute force, what it spends beyond that where nothing is kept, and its figures."""
    brute, found = spent(lambda: brute_force(examined, real, way), times)
    again, _ = spent(lambda: float_again(examined, real, way), times)
    return brute, again, found


def told(name: str, count: int, threads: int, times: int) -> str:
    examined = patient(name, count)
    real = without(examined.calibrated)
    probes(examined, 1)  # the first of all warms up
    brute, again, wanted = clocked(examined, real, ALONE, times)
    alone, found = spent(lambda: probes(examined, 1), times)
    many, _ = spent(lambda: probes(examined, threads), times)
    plain, workers = Way(threads, 1), Way(1, threads)
    by_way = [clocked(examined, real, way, times)[:2] for way in (plain, workers)]
    bare = stock.read(real.to_bytes())
    script = stock.sensitivities(bare, list(examined.samples), wanted)
    per_node = script.seconds / len(script.cosines) * len(wanted)
    same = ranked(found, "cosine-similarity") == ranked(wanted, "cosine-similarity")
    agrees = "the same ranking" if same else _agreement(found, wanted)
    off = max(abs(_cosine(found[node]) - _cosine(sums)) for node, sums in wanted.items())
    ratios = [brute.cpu + again.cpu, brute.cpu, per_node]
    return (
        f"{name:<12}{count:>8}{len(wanted):>8}{brute.cpu:>9.2f}{alone.cpu:>9.2f}"
        + "".join(f"{seconds / alone.cpu:>8.1f}" for seconds in ratios)
        + f"{(brute.cpu + again.cpu) / behind(examined):>8.1f}"
        + "".join(f"{(b.clock + a.clock) / many.clock:>10.1f}" for b, a in by_way)
        + f"{off:>8.0e}   {agrees}"
    )


def _agreement(found: Mapping[str, Sums], wanted: Mapping[str, Sums]) -> str:
    """A number that is halfway between two codes may be rounded to either, by the last bit of what
    onnxruntime computes of more nodes or fewer: of one sample a cosine may then be another."""
    meant = [_cosine(wanted[node]) for node in ranked(found, "cosine-similarity")]
    apart = max(max(meant[: at + 1]) - cosine for at, cosine in enumerate(meant))
    if apart >= TIE:
        return "ANOTHER RANKING"
    return f"the same ranking, but for cosines {apart:.0e} apart"


def _cosine(sums: Sums) -> float:
    return min(one.cosine for one in sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--samples", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--times", type=int, default=1, help="the least of so many is told")
    given = parser.parse_args()
    print(f"{'':<28}{'seconds of CPU':>18}{'... / probes':>32}{given.threads:>10} threads")
    print(
        f"{'model':<12}{'samples':>8}{'nodes':>8}{'brute':>9}{'probes':>9}"
        f"{'whole':>8}{'kept':>8}{'stock':>8}{'limit':>8}{'plain':>10}{'workers':>10}{'off':>8}"
    )
    for name in given.models:
        for count in given.samples:
            print(told(name, count, given.threads, given.times), flush=True)


if __name__ == "__main__":
    main()
