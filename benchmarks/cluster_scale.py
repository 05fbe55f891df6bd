"""How far a cluster goes: a simulation with measured figures.

    python benchmarks/cluster_scale.py [--projects 1000] [--targets 8] [--images 10000]

Every node of every project passes, in order: the client packs it; the scheduler takes it; a worker
fetches the inputs that it lacks from the store, reads them, computes, and stores its artifact; the
scheduler hears of it; the client fetches the artifact. The client, the scheduler and the store
serve one request after another, each as fast as its figure says. Nodes that read the same need the
store once per worker.

Compute and sizes are those of benchmarks/cluster_stages.py, per task costs those of
benchmarks/cluster.py. Three rows per number of workers say what a change would give:

    now       any worker takes a node; the client fetches every artifact
    lean      the client leaves the samples in the store
    near      and a worker takes the nodes of its latest projects first
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

STAGES = Path(__file__).with_name("cluster_stages.json")
# Inputs by stage, as they are planned; the first row is shared by all targets.
SHARED = {
    "original_float": (),
    "optimized_float": ("original_float",),
    "samples": ("original_float",),
    "statistics": ("optimized_float", "samples"),
}
PER_TARGET = {
    "recipe": ("optimized_float", "statistics", "samples"),
    "calibrated": ("optimized_float", "recipe", "samples"),
    "quantized": ("calibrated",),
    "compiled": ("quantized", "calibrated"),
    "compiled_check": ("compiled", "quantized", "samples"),
    "comparison": ("optimized_float", "calibrated", "quantized", "samples"),
}
GBIT = 1e9 / 8
WAYS = ("now", "lean", "near")


@dataclass(frozen=True)
class Figures:
    """Seconds per task, and bytes per second. Links are those of the simulated site."""

    scheduler_s: float = 0.0012
    client_s: float = 0.0055
    file_s: float = 0.0006  # of the client, for each picture of a project
    read_rate: float = 0.57e9  # of a job's inputs: fetched near, verified twice
    write_rate: float = 0.26e9  # of its artifact: copied, verified and sent
    store_link: float = 10 * GBIT
    client_link: float = 10 * GBIT
    worker_link: float = 10 * GBIT
    source_bytes: float = 40e3  # of a picture as it lies in the project


@dataclass
class Server:
    """Serves one request after another."""

    free_at: float = 0.0
    busy: float = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """When it is done."""
        self.free_at = max(now, self.free_at) + seconds
        self.busy += seconds
        return self.free_at


class Task(NamedTuple):
    project: int
    target: int  # -1 of a node that all targets share
    stage: str


@dataclass
class Cluster:
    figures: Figures
    costs: Mapping[str, Mapping[str, float]]
    images: int
    targets: int
    way: str
    workers: int
    client: Server = field(default_factory=Server)
    scheduler: Server = field(default_factory=Server)
    store: Server = field(default_factory=Server)
    compute: float = 0.0

    def __post_init__(self) -> None:
        self.waiting: dict[int, deque[Task]] = {}  # by project
        self.free = list(range(self.workers))
        self.blobs: list[set[Task]] = [set() for _ in self.free]
        self.recent: list[deque[int]] = [deque(maxlen=4) for _ in self.free]  # projects
        self.done: set[Task] = set()
        self.events: list[tuple[float, int, str, Task, int]] = []
        self.numbers = count()

    def run(self, projects: int) -> float:
        """Seconds until all is made."""
        for project in range(projects):
            self.submit(0.0, Task(project, -1, "original_float"))
        now = 0.0
        while self.events:
            now, _, kind, task, worker = heapq.heappop(self.events)
            if kind == "queued":
                self.waiting.setdefault(task.project, deque()).append(task)
            elif kind == "computed":
                size = self.size(task.stage)
                stored = self.store.serve(now, size / self.figures.store_link)
                self.at(stored, "made", task, worker)
            elif kind == "made":
                self.free.append(worker)
                heard = self.scheduler.serve(now, self.figures.scheduler_s / 2)
                self.at(self.client.serve(heard, self.fetch_s(task)), "done", task)
            else:
                self.done.add(task)
                for follower in self.followers(task):
                    self.submit(now, follower)
            while self.free and self.waiting:
                self.begin(now)
        return now

    def at(self, when: float, kind: str, task: Task, worker: int = -1) -> None:
        heapq.heappush(self.events, (when, next(self.numbers), kind, task, worker))

    def submit(self, now: float, task: Task) -> None:
        packed = self.client.serve(now, self.figures.client_s / 2 + self.source_s(task))
        self.at(self.scheduler.serve(packed, self.figures.scheduler_s / 2), "queued", task)

    def begin(self, now: float) -> None:
        task, worker = self.chosen()
        self.free.remove(worker)
        if task.project not in self.recent[worker]:
            self.recent[worker].append(task.project)
        figures, inputs = self.figures, list(self.inputs(task))
        lacking = sum(self.size(i.stage) for i in inputs if i not in self.blobs[worker])
        self.blobs[worker].update((*inputs, task))
        sent = self.store.serve(now, lacking / figures.store_link)
        ready = max(sent, now + lacking / figures.worker_link)
        seconds = self.seconds(task.stage)
        self.compute += seconds
        read = sum(self.size(i.stage) for i in inputs) / figures.read_rate
        written = self.size(task.stage) / figures.write_rate
        self.at(ready + read + seconds + written, "computed", task, worker)

    def chosen(self) -> tuple[Task, int]:
        """A waiting node and a free worker, which has the project's samples if the way is near."""
        if self.way == "near":
            for worker in self.free:
                for project in self.recent[worker]:
                    if self.waiting.get(project):
                        return self.taken(project), worker
        return self.taken(next(iter(self.waiting))), self.free[0]

    def taken(self, project: int) -> Task:
        task = self.waiting[project].popleft()
        if not self.waiting[project]:
            del self.waiting[project]
        return task

    def inputs(self, task: Task) -> Iterator[Task]:
        sources = SHARED.get(task.stage) or PER_TARGET.get(task.stage, ())
        for stage in sources:
            yield Task(task.project, -1 if stage in SHARED else task.target, stage)

    def followers(self, task: Task) -> Iterator[Task]:
        """The nodes whose last input is `task`."""
        targets = range(self.targets) if task.target < 0 else (task.target,)
        every = [Task(task.project, -1, stage) for stage in SHARED]
        every += [Task(task.project, target, stage) for target in targets for stage in PER_TARGET]
        for follower in every:
            sources = list(self.inputs(follower))
            if task in sources and all(source in self.done for source in sources):
                yield follower

    def seconds(self, stage: str) -> float:
        cost = self.costs[stage]
        return cost["fixed_s"] + self.images * cost["image_s"]

    def size(self, stage: str) -> float:
        cost = self.costs[stage]
        return cost["fixed_bytes"] + self.images * cost["image_bytes"]

    def fetch_s(self, task: Task) -> float:
        """Of an artifact, by the client. The store sends it meanwhile."""
        is_left = task.stage == "samples" and self.way != "now"
        size = 0.0 if is_left else self.size(task.stage)
        self.store.busy += size / self.figures.store_link
        return self.figures.client_s / 2 + self.moved_s(size)

    def source_s(self, task: Task) -> float:
        """Of the pictures of a project, which the client sends."""
        if task.stage != "samples":
            return 0.0
        each = self.figures.file_s + self.figures.source_bytes / self.figures.client_link
        return self.images * each

    def moved_s(self, size: float) -> float:
        """By the client, whose disk and hash may be slower than its link."""
        return max(size / self.figures.client_link, size / self.figures.read_rate)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--projects", type=int, default=1000)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[16, 64, 256])
    arguments = parser.parse_args()
    costs, figures = json.loads(STAGES.read_text()), Figures()
    print("workers  way      hours   compute  client  scheduler  store   (busy share)")
    for workers in arguments.workers:
        for way in WAYS:
            cluster = Cluster(figures, costs, arguments.images, arguments.targets, way, workers)
            seconds = cluster.run(arguments.projects)
            compute = cluster.compute / workers / seconds
            servers = (cluster.client, cluster.scheduler, cluster.store)
            shares = [compute, *(server.busy / seconds for server in servers)]
            shown = "  ".join(f"{share:7.1%}" for share in shares)
            print(f"{workers:7}  {way:<5}  {seconds / 3600:7.2f}   {shown}", flush=True)


if __name__ == "__main__":
    main()
