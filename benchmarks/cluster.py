"""The overhead of a cluster per task, and the gain of a second worker.

    python benchmarks/cluster.py [--tasks 200] [--noops 10000] [--projects 4] [--trials 40]

On this machine, with one and two workers of one thread each, over a cache folder that client and
workers share. Figures per number of workers:

- scheduler: Dask alone, a task that returns at once;
- job: a node that the store has, submitted all the same: the job is written, scheduled and read,
  its key computed again, its inputs fetched, and its artifact found and published again;
- part: a part of a stage that the store has: its item is written, its result found and read;
- search: the trials of `npumake precision` on the detector, one node in 8 bits each;
- projects: copies of digits with different percentiles, nothing in the store.

Both ratios at full size take some minutes of an idle machine:

    python benchmarks/cluster.py --noops 1000 --projects 100 --trials 40

The machine may be busy: ratios are of one run, and CPU seconds beside those of the wall. The ratio
`CPU` is what idle cores would give: the seconds of one process, over those of the client and of the
busiest worker.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from workspace import REPO, lay_out

from npumake import digest
from npumake.cli.projects import builds
from npumake.make import dask_worker
from npumake.make.build import Build
from npumake.make.carrier import Blob, written
from npumake.make.cluster import DaskExecutor
from npumake.make.delegation import Delegated, completed
from npumake.make.executor import Submission
from npumake.make.job import packed
from npumake.make.maker import make
from npumake.make.parts import Order
from npumake.make.trials import Trials

WORKERS = (1, 2)
PART = "npumake.quant.calibration.shards.shard"


class Cost(NamedTuple):
    """Wall seconds; CPU seconds of this process, the scheduler in it, and of each worker."""

    wall: float
    client: float
    workers: tuple[float, ...] = ()

    @property
    def cpu(self) -> float:
        """What it would take on idle cores, at most."""
        return self.client + max(self.workers, default=0.0)

    def per(self, tasks: int) -> str:
        wall, client, workers = (
            1e3 * seconds / tasks for seconds in (self.wall, self.client, sum(self.workers))
        )
        return f"{wall:.2f} ms wall, {client:.2f} ms CPU here, {workers:.2f} ms CPU of workers"


def measured(executor: DaskExecutor, step: Callable[[], object]) -> Cost:
    client: Any = executor._client
    before, own, began = client.run(time.process_time), time.process_time(), time.perf_counter()
    step()
    wall, own = time.perf_counter() - began, time.process_time() - own
    after = client.run(time.process_time)
    return Cost(wall, own, tuple(after[name] - before[name] for name in before))


def scheduler(executor: DaskExecutor, tasks: int) -> None:
    """Tasks of Dask alone."""
    client: Any = executor._client
    began = time.perf_counter()
    futures = [
        client.submit(dask_worker.introduce, "", key=f"noop-{number}-{began}", pure=False)
        for number in range(tasks)
    ]
    client.gather(futures)


def job(executor: DaskExecutor, build: Build, tasks: int) -> None:
    """Nodes that the store has."""
    node = next(node for node in build.plan.nodes if node.stage == "optimized_float")
    document = build.document(node, build.made_inputs(node))
    began = time.perf_counter()
    futures: list[Future[Any]] = []
    for number in range(tasks):
        blob = written(packed(build, node, document, executor.carrier), executor.carrier)
        work = Submission(f"{number}-{began}", node.name, blob, 0)
        futures.append(executor.submit(work))
    for future in futures:
        completed(Delegated(build, node, document, future), executor)


def part(executor: DaskExecutor, build: Build, tasks: int) -> None:
    """Parts of a stage, whose items differ in their spaces only."""
    node = next(node for node in build.plan.nodes if node.stage == "statistics")
    document, carrier = build.document(node, build.made_inputs(node)), executor.carrier
    blob = written(packed(build, node, document, carrier), carrier)
    key = digest.of_document(document)
    items = [carrier.send_bytes(b"[0, 1]" + b" " * number) for number in range(tasks)]
    futures = [executor.submit_part(Order(blob, key, PART, item, 0)) for item in items]
    for future in futures:
        carrier.bring_bytes(Blob(**future.result()["blob"]))


def search(root: Path, workers: int, trials: int) -> Cost:
    """Of so many trials; by one worker those are this process."""
    (build,) = (build for _, build in builds(root) if isinstance(build, Build))
    calibrated, comparison = (
        build.plan.node(f"{build.plan.project}:rdk-x5/{n}") for n in ("calibrated", "comparison")
    )
    with closing(DaskExecutor(build.memory, None, workers)) as executor:
        measures = Trials(build, calibrated, comparison, "int16", None, executor)
        names = [*measures.candidates]
        list(measures.scores_without(names[-2:]))  # the imports of each worker, and its inputs
        assert len(names) >= trials, f"the model has {len(names)} nodes"
        return measured(executor, lambda: list(measures.scores_without(names[:trials])))


def detector(root: Path) -> None:
    """The detector, built as far as its trials need."""
    ignored = shutil.ignore_patterns("out", ".doit.db*", "__pycache__")
    shutil.copytree(REPO / "projects/shapes-detector", root / "projects/d", ignore=ignored)
    project = root / "projects/d/project.yaml"
    project.write_text(project.read_text().split("report:")[0] + "targets: [rdk-x5]\n")
    (build,) = (build for _, build in builds(root) if isinstance(build, Build))
    for node in build.plan.nodes:
        if node.stage in ("original_float", "optimized_float", "samples", "statistics", "recipe"):
            make(build, node)
    build.memory.save()


def build_seconds(root: Path, projects: int, workers: int) -> tuple[float, float]:
    """Wall and CPU seconds of a build in a new workspace, the start of its cluster included."""
    root.mkdir()
    lay_out(root, projects)
    for number, folder in enumerate(sorted((root / "projects").iterdir())):
        text = (folder / "project.yaml").read_text()
        percentile = f"percentile: {0.999 + number / 1e6:.6f}"  # else equal keys would run once
        (folder / "project.yaml").write_text(text.replace("method: max ", f"{percentile} "))
    began, before = time.perf_counter(), cpu_of_children()
    command = [sys.executable, "-m", "npumake", "build", "--executor", "dask", "-n", str(workers)]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, cpu_of_children() - before


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compare_searches(folder: Path, trials: int) -> None:
    detector(folder / "search")
    costs = []
    for workers in WORKERS:
        own = folder / f"search{workers}"
        shutil.copytree(folder / "search", own, symlinks=True)
        costs.append(search(own, workers, trials))
    one, two = costs
    print(f"{trials} trials: 1 worker {one}", flush=True)
    print(f"{trials} trials: 2 workers {two}", flush=True)
    print(f"ratio {one.wall / two.wall:.2f}, CPU {one.cpu / two.cpu:.2f}", flush=True)


def measure(folder: Path, arguments: argparse.Namespace) -> None:
    root = folder / "measured"
    build_seconds(root, 1, 1)
    (build,) = (build for _, build in builds(root) if isinstance(build, Build))
    for workers in WORKERS:
        with closing(DaskExecutor(build.memory, None, workers)) as executor:
            job(executor, build, 10)  # the imports of each worker
            part(executor, build, arguments.tasks)  # so that the store has them
            steps = (
                ("no-op", arguments.noops, lambda n, e=executor: scheduler(e, n)),
                ("job", arguments.tasks, lambda n, e=executor: job(e, build, n)),
                ("part", arguments.tasks, lambda n, e=executor: part(e, build, n)),
            )
            for name, tasks, step in steps:
                cost = measured(executor, partial(step, tasks))
                print(f"{workers} workers, {tasks} x {name}: {cost.per(tasks)}", flush=True)
    if arguments.trials:
        compare_searches(folder, arguments.trials)
    if arguments.projects:
        one, two = (build_seconds(folder / f"w{n}", arguments.projects, n) for n in WORKERS)
        shown = " and ".join(f"{wall:.1f} s ({cpu:.1f} s CPU)" for wall, cpu in (one, two))
        print(f"{arguments.projects} projects: {shown}, ratio {one[0] / two[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--noops", type=int, default=10_000)
    parser.add_argument("--projects", type=int, default=4)
    parser.add_argument("--trials", type=int, default=40)
    arguments = parser.parse_args()
    os.environ["NPUMAKE_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments)


if __name__ == "__main__":
    main()
