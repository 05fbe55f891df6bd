"""What a person waits for, in float passes of the same samples.

    NPUMAKE_SHARED=../shared python benchmarks/passes.py [--models yolox] [--samples 100]
                                   [--before /path/to/another/checkout]

The float pass runs the optimized model once over the samples, a sample on each thread, with its
session at hand. Every other figure is CPU seconds over those of this pass: they hardly depend on
what else the machine does. Beside it are the seconds waited, which do. `max` to `best` are the
stage `recipe` behind finished statistics; `to the table` is an edit of the method, typed as a
person types it, until its table is printed; `first build` a whole build with `default` and an empty
cache, pictures and libraries included. MB is the peak of a process that runs the stage `comparison`
alone, over that of one that only loads its inputs. With `--before` each figure of the other
checkout stands in front of ours.

On two quiet cores, 100 samples, one run with `--before`:

                first build
                     before             now
    squeezenet      53.6 x 12.7 s    42.8 x 10.1 s
    mobilenet-v2    75.6 x 22.4 s    63.2 x 19.3 s
    mobilenet      162.2 x  9.1 s   149.1 x  8.4 s

The stages of one build in a process, without pictures, libraries and statistics, take 39.7 and 32.5
of squeezenet, 63.5 and 49.2 of mobilenet-v2, 77.3 and 68.9 of yolox-416 (before the last change).
Bias correction read its values against the order of memory: an index array in the second axis gives
rows that lie column by column. It took 22 ns a value, and a quarter of a first build of
mobilenet-v2. A search corrected the biases of the other scheme, tried int16 outputs against ties
where none were, and serialized each trial twice.

On another machine, two quiet cores, before and after `default` tried even_depthwise, also behind
ReLU6: squeezenet 29.7 and 29.3, mobilenet-v2 44.5 and 50.0, mobilenet 77 and 86. There `best` takes
50.6 of squeezenet and 84.1 of mobilenet, an edit to its table 7.4 and 17.3, 4.4 and 2.5 s.

On two quiet cores, before that: `best` of squeezenet 93.9, of mobilenet 122.7 (busy cores); an
edit to its table 13.3 and 31.9, which are 3.0 and 1.9 s, of a goal of 2.

YOLOX, one run with `--before` for each column but `best`, which is a stage in one process. The
person detector takes pictures of 192 x 192, and has 353 quantized nodes for a float pass of .3 s:

                   to the table                  first build                   best
                     before         now            before         now           before    now
    yolox          54.0, 12.3 s   33.2,  8.0 s   136.1, 35.1 s   132.1, 33.6 s   370      325
    yolox-416      25.1, 27.0 s   11.9, 13.2 s    58.6, 55.8 s    50.7, 48.0 s   149      121
    mobilenet      23.6,  2.5 s   21.7,  2.3 s

The 11.9 are of a float pass of 1.7 s. Since samples of more than 256 MB are compared one by one,
for less memory (stage_memory.py), an edit to the table of yolox-416 takes 15.3, 18.8 s, and 16.1,
16.5 s without that, in one run with a float pass of 1.48 s.

Before, the diagnosis probed every node, and every misfit. Of what is left from an edit to its table
of yolox-416, the comparison of 16 samples takes two fifths, a fifth the trials of suggestions, a
tenth the probes. Of its first build 26 s are the search, 7 the last bias correction, 5 the
comparison; observing 404 samples takes 5 passes, 11 trials over 32 samples 9. At 192 x 192 the same
sessions are opened and graphs written for a fifth of the pixels.

The goals are 15 from an edit to its table, 45 for a first build, 150 for `best`. Squeezenet is
below all, yolox-416 at the first and below the last. Mobilenet and yolox stay above the first two:
their float passes take .07 and .3 s. Mobilenet-v2 stays above the second, with no one thing left:
rounding takes 7, runs of trials 6, runs step by step 5, sessions 3, the shifts 2, copies 2; the
final correction 11; libraries, pictures and the check of the compiled file 8, the comparison 4,
statistics 4. Its weights are of a seed, so a search may keep another recipe than the trained
model's; without bias correction a build takes ten passes less.

Bytes differ where a mean in float32 decides a code. Over five folds, `default` on ara240,
squeezenet has the cosine it had in three and .99808 for .99812, .99775 for .99776 in the others.
Mobilenet keeps its own in four and gains in one (before the last change), YuNet in two of two.

These attempts were not kept:

    Q/DQ in float, not integer kernels      a third less of the runs of mobilenet and squeezenet, a
                                            tenth of `default` of squeezenet and yolox-416, nothing
                                            of mobilenet-v2; the bytes differ
    a prefix shared by trials               about 3 of mobilenet-v2. The prefix in one run has other
                                            last bits than step by step: a trial's figure would
                                            follow those before it in its process, and a cluster's
                                            recipe the worker
    one slope for all of Newton's steps     half a pass, but where most of a channel is cut off the
                                            steps are too long: YuNet loses .1 with it and 64
                                            positions, the logarithm of its worst output's loss
    16 samples for a trial's biases alone   about 2; the recipes of squeezenet are the same in five
                                            folds. Its goal does not need them, and for the other
                                            they are not enough
    64 positions, not 128, of a correction  about 3 of mobilenet-v2, .6 of squeezenet, which loses
                                            nothing in five folds; YuNet loses .26 in one of two
    16 samples, not 32, correct a trial     a third less, but rounding overfits them: `best` of
                                            squeezenet then keeps neither it nor `migrate`
    64 samples, not 128, correct the build  a tenth less of a first build; over five folds the
                                            cosine of squeezenet falls in four
    no page faults (MALLOC_TRIM_THRESHOLD_) 3 % of mobilenet-v2
    sessions without an arena               no less memory, and no faster to open

By the profile these would gain little: fewer held-out samples for candidates that lose, 1 of
mobilenet-v2; tensors bound to arrays, not copied twice, 2.
A quarter of `best` of mobilenet, a tenth of squeezenet's, are the two trials beyond the limit of
int16, which its front shows: 28 and 36 % int16 hardly differ on mobilenet, 26 and 69 % do on
squeezenet. No larger import without a use was found.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from calibration import MODELS, SHARED, prepared

from npumake.data.samples import Samples
from npumake.engine.ort import OrtSession
from npumake.engine.parallel import side_by_side
from npumake.graph import Graph
from npumake.project.sections import Calibration, Method
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.search.model_graphs import model_graphs
from npumake.stages.calibrated import calibrated
from npumake.stages.comparison import comparison
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

TARGET = "ara240"
METHODS = ("max", "kl", "default", "best")
PROJECT = """
model: {{path: {file}}}
inputs: {{'*': {input}}}
data: {{'*': {{files: samples/*.jpg, transforms: [{{resize: {{mode: opencv}}}}]}}}}
calibration: {calibration}
targets: [{target}]
"""
INPUTS = {
    "mobilenet": "{type: rgb, layout: NHWC, mean: 127.5, scale: 0.0078431373}",
    "squeezenet": "{type: bgr, mean: [103.939, 116.779, 123.68]}",
    "yolox": "{type: bgr}",
    "yolox-416": "{type: bgr}",
    "mobilenet-v2": "{type: rgb, mean: 127.5, scale: 0.0078431373}",
    "ultraface": "{type: rgb, mean: 127, scale: 0.0078125}",
    "fastestdet": "{type: bgr, scale: 0.0039215686}",
}
ROUNDS = 3


class Cost(NamedTuple):
    """CPU seconds, the seconds that a person waits, and the bytes that a stage adds."""

    cpu: float
    waited: float
    memory: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", nargs="+", help="some of the figures")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(FIGURES[options.measure[0]](Path(options.measure[1]))))
        return
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            prepared(name, Path(folder), options.samples)
            lay_out(name, Path(folder), options.samples)
            print(f"{name}, {options.samples} samples", flush=True)
            show(Path(folder), options)


def show(folder: Path, options: argparse.Namespace) -> None:
    trees = [tree for tree in (options.before, Path(__file__).parents[1]) if tree]
    floor = min(run("float pass", folder, tree).cpu for tree in trees)
    print(f"  {'float pass':<14} {floor:8.2f} s of CPU")
    for figure in options.only or [name for name in FIGURES if name != "float pass"]:
        columns = [column(figure, run(figure, folder, tree), floor) for tree in trees]
        print(f"  {figure:<14}" + "".join(columns), flush=True)


def column(figure: str, cost: Cost, floor: float) -> str:
    if figure in MEMORY:
        return f"{cost.memory / 1e6:9.1f} MB"
    return f"{cost.cpu / floor:9.1f} x {cost.waited:6.2f} s"


def run(figure: str, folder: Path, tree: Path) -> Cost:
    command = [sys.executable, __file__, "--measure", figure, str(folder)]
    path = os.pathsep.join((str(tree / "pipeline"), str(Path(__file__).parent)))
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}  # as in the CLI
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def lay_out(name: str, folder: Path, count: int) -> None:
    """The project of this model, with pictures."""
    model, project = MODELS[name], folder / "project"
    (project / "samples").mkdir(parents=True)
    file, content = model.read()
    (project / file).write_bytes(content)
    for picture in sorted((SHARED / "images" / "imagenet500").rglob("*.jpg"))[:count]:
        (project / "samples" / picture.name).write_bytes(picture.read_bytes())
    facts = {"file": file, "input": INPUTS[name]}
    (folder / "project.json").write_text(json.dumps(facts | {"target": TARGET}))


def cpu() -> float:
    """CPU seconds of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def spent(what: Callable[[], object]) -> Cost:
    before, start = cpu(), time.perf_counter()
    what()
    return Cost(cpu() - before, time.perf_counter() - start)


def least(costs: Sequence[Cost]) -> Cost:
    """The smallest of each figure."""
    return Cost(*map(min, zip(*costs, strict=True)))


# -- a figure is measured in a process of its own ------------------------------------------------


def float_pass(folder: Path) -> Cost:
    graph, samples = _inputs(folder)
    session = OrtSession(graph.to_bytes())
    feeds = list(samples)

    def once() -> None:
        for _ in side_by_side(lambda feed: len(session.run(None, feed)), feeds):
            pass

    once()
    return least([spent(once) for _ in range(ROUNDS)])


def statistics(folder: Path) -> Cost:
    graph, samples = _inputs(folder)
    return spent(lambda: observe(graph, samples).save(folder / "statistics.npz"))


def method(name: str) -> Callable[[Path], Cost]:
    def measure(folder: Path) -> Cost:
        is_best = name == "best"
        calibration = Calibration(recipe="best") if is_best else Calibration(cast(Method, name))
        graph, samples = _inputs(folder)
        measured = _statistics(folder, graph, samples)
        target = read_target(TARGET)
        return spent(lambda: recipe(graph, measured, samples, calibration, target))

    return measure


def compared(folder: Path) -> Cost:
    return spent(_comparison(folder))


def compared_memory(folder: Path) -> Cost:
    stage = _comparison(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cost = spent(stage)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return cost._replace(memory=1024.0 * (largest - before))


def _comparison(folder: Path) -> Callable[[], object]:
    graph, samples = _inputs(folder)
    target, calibration = read_target(TARGET), Calibration("kl")
    measured = _statistics(folder, graph, samples)
    chosen = recipe(graph, measured, samples, calibration, target)
    fake = calibrated(graph, chosen, samples, target)
    graphs = model_graphs(graph, chosen, fake, quantized(fake, target), target)
    return lambda: comparison(graphs, measured, chosen, samples, calibration, target, None)


def to_the_table(folder: Path) -> Cost:
    build(folder, "{method: max_percentile, percentile: 0.98}")
    costs = []
    for run_number in range(ROUNDS):
        share = 0.99 + 1e-3 * run_number
        edited = f"{{method: max_percentile, percentile: {share}}}"
        costs.append(build(folder, edited))
    return least(costs)


def first_build(folder: Path) -> Cost:
    for left in ("cache", "out"):
        shutil.rmtree(folder / "project" / left, ignore_errors=True)
    return build(folder, "{method: default}")


def build(folder: Path, calibration: str) -> Cost:
    facts = json.loads((folder / "project.json").read_text())
    project = folder / "project"
    (project / "project.yaml").write_text(PROJECT.format(**facts, calibration=calibration))
    command = [sys.executable, "-m", "npumake.cli.main", "build"]
    bytecode = "PYTHONDONTWRITEBYTECODE"
    usual = {key: value for key, value in os.environ.items() if key != bytecode}
    return spent(
        lambda: subprocess.run(
            command, check=True, cwd=project, env=usual, stdout=subprocess.DEVNULL
        )
    )


def _inputs(folder: Path) -> tuple[Graph, Samples]:
    return Graph.load(folder / "float.onnx"), Samples.load(folder / "calibrate.npz")


def _statistics(folder: Path, graph: Graph, samples: Samples) -> Statistics:
    file = folder / "statistics.npz"
    if not file.exists():
        observe(graph, samples).save(file)
    return Statistics.load(file)


FIGURES: dict[str, Callable[[Path], Cost]] = {
    "float pass": float_pass,
    "statistics": statistics,
    **{name: method(name) for name in METHODS},
    "comparison": compared,
    "comparison, MB": compared_memory,
    "to the table": to_the_table,
    "first build": first_build,
}
MEMORY = ("comparison, MB",)

if __name__ == "__main__":
    main()
