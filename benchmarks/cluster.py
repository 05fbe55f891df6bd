"""The overhead of a cluster per task, and the gain of a second worker.

    python benchmarks/cluster.py [--tasks 200] [--workers 1 2] [--projects 4]

Client and workers run on this machine and share a cache folder. It prints three figures per number
of workers:

- scheduler: Dask alone, a task that returns at once;
- job: a node that the store already has. The job is written, scheduled and read, its key is
  computed again, its inputs are fetched, and its artifact is found and published again;
- projects: wall time of copies of digits with different percentiles, nothing in the store.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from workspace import lay_out

from npumake.cli.projects import builds
from npumake.make import dask_worker
from npumake.make.build import Build
from npumake.make.cluster import DaskExecutor
from npumake.make.delegation import Delegated, completed
from npumake.make.executor import written
from npumake.make.job import packed


def scheduler(executor: DaskExecutor, tasks: int) -> float:
    """Seconds per task of Dask alone."""
    client: Any = executor._client
    began = time.perf_counter()
    futures = [
        client.submit(dask_worker.introduce, "", key=f"noop-{number}-{began}", pure=False)
        for number in range(tasks)
    ]
    client.gather(futures)
    return (time.perf_counter() - began) / tasks


def job(executor: DaskExecutor, build: Build, tasks: int) -> float:
    """Seconds per node that the store has, the client's part included."""
    node = next(node for node in build.plan.nodes if node.stage == "optimized_float")
    document = build.document(node, build.made_inputs(node))
    began = time.perf_counter()
    futures: list[Future[Any]] = []
    for number in range(tasks):
        blob = written(packed(build, node, document, executor.carrier), executor.carrier)
        futures.append(executor.submit(f"{number}-{began}", blob))
    for future in futures:
        completed(Delegated(build, node, document, future), executor)
    return (time.perf_counter() - began) / tasks


def build_seconds(root: Path, projects: int, workers: int) -> float:
    """Wall time of a build in a new workspace, the start of its cluster included."""
    root.mkdir()
    lay_out(root, projects)
    for number, folder in enumerate(sorted((root / "projects").iterdir())):
        text = (folder / "project.yaml").read_text()
        percentile = f"percentile: {0.999 + number / 1e6:.6f}"  # else equal keys would run once
        (folder / "project.yaml").write_text(text.replace("method: max ", f"{percentile} "))
    began = time.perf_counter()
    command = [sys.executable, "-m", "npumake", "build", "--executor", "dask", "-n", str(workers)]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--projects", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "measured")
        build_seconds(root, 1, 1)
        (build,) = (build for _, build in builds(root) if isinstance(build, Build))
        for workers in arguments.workers:
            executor = DaskExecutor(build.memory, None, workers)
            job(executor, build, 10)  # the imports of each worker
            noop = scheduler(executor, arguments.tasks)
            node = job(executor, build, arguments.tasks)
            executor.close()
            seconds = build_seconds(Path(folder, f"w{workers}"), arguments.projects, workers)
            print(
                f"{workers} workers: scheduler {noop * 1e3:.2f} ms, job {node * 1e3:.2f} ms, "
                f"{arguments.projects} projects {seconds:.1f} s"
            )


if __name__ == "__main__":
    main()
