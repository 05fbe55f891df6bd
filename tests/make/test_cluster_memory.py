"""The memory of a cluster: large stages do not meet on a worker, and one too large for all runs."""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clusters import PYTHON, Cluster, artifacts, client_at, cluster, end
from npumake.make.carrier import Blob
from npumake.make.job import MachineError
from npumake.make.machine import MEMORY, PART_MEMORY
from npumake.make.parts import Order
from npumake.make.peak_memory import Peak, PeakTable
from npumake.make.present_node import PresentNode
from npumake.stages import STAGES
from npumake.stages.peaks import PEAKS
from processes import eventually
from workspaces import Workspace, made

distributed = pytest.importorskip("distributed")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's figures")
slow = pytest.mark.slow
GIB = 1 << 30
LIMIT = "2GiB"  # of each worker here
RECIPE = "digits@{}:rdk-x5/recipe"
SEARCHES = "".join(
    f"{name}: {{calibration: {{method: default, percentile: {share}}}}}\n"
    for name, share in (("a", 0.9991), ("b", 0.9992))
)


def part(node: str, memory: int) -> Order:
    return Order(Blob("", 0), node, "part", Blob("", 0), memory)


def test_a_part_joins_a_node_of_its_own_or_one_that_leaves_room() -> None:
    present = PresentNode()
    with present.begun("a", "node a", 6):
        present.admit(part("a", 6), 10)  # it has the inputs already
        assert not present.has_company
        present.admit(part("b", 4), 10)
        assert present.has_company
        with pytest.raises(MachineError, match="beside `node a`"):
            present.admit(part("b", 5), 10)
    present.admit(part("b", 10), 10)
    with present.begun("b", "node b", 1):
        assert not present.has_company


def test_rules_of_memory_name_stages() -> None:
    assert {*PEAKS} <= {*STAGES, "trial"}


@linux
def test_a_peak_is_that_of_its_own_time() -> None:
    with mmap.mmap(-1, 64 << 20) as large:  # goes back to the system at once, not to an allocator
        large.write(b"\1" * len(large))
        with_large = Peak().size
    without = Peak().size
    assert with_large is not None
    assert without is not None
    assert without < with_large - (32 << 20)


def test_a_table_of_peaks_keeps_what_others_wrote_and_drops_what_is_no_size(
    tmp_path: Path,
) -> None:
    path = tmp_path / "peaks.json"
    first, second = PeakTable(path), PeakTable(path)
    first.remember("a", 1)
    first.save()
    second.remember("b", 2)
    second.save()
    assert [PeakTable(path).of(name) for name in "abc"] == [1, 2, None]
    for text in ('{"a": -1, "b": true, "c": "1", "d": 3}', "[1]", "{", "\udcff"):
        path.write_text(text, errors="surrogateescape")
        assert [PeakTable(path).of(name) for name in "abc"] == [None] * 3


class Task(NamedTuple):
    """A job, or a part of the job `node`; `start` and `stop` by the clock of its worker."""

    key: str
    node: str | None
    worker: str
    start: float
    stop: float


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The second worker is started by a launcher that calls `dask worker` itself."""
    with cluster(tmp_path_factory.mktemp("pair") / "c") as here:
        here.start_worker("one", "--memory-limit", LIMIT)
        plain = f"-m distributed.cli.dask_worker --no-dashboard --name two --memory-limit {LIMIT}"
        python = f'"{sys.executable}"'
        line = (
            f'eval "$({python} -m npumake worker)"; '
            f'exec {python} {plain} --scheduler-file "{here.scheduler}"'
        )
        here.start("two", "sh", "-c", line)
        yield here


def workers_of(here: Cluster) -> dict[str, dict[str, float]]:
    """The resources of each worker by its name."""
    with distributed.Client(scheduler_file=here.scheduler, set_as_default=False) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return {worker["name"]: worker["resources"] for worker in workers}


def estimate(client: Workspace, **sizes: int) -> None:
    """The estimates of the recipes of these variants, as an earlier build measured them."""
    cache = client.root / "cache"
    cache.mkdir(exist_ok=True)
    table = {RECIPE.format(name): size for name, size in sizes.items()}
    (cache / "peaks.json").write_text(json.dumps(table))


@slow
@linux
def test_workers_announce_their_limit_whoever_starts_them(pair: Cluster) -> None:
    assert eventually(lambda: len(workers_of(pair)) == 2)
    for resources in workers_of(pair).values():
        assert {resources[MEMORY], resources[PART_MEMORY]} == {2 * GIB}


@slow
@linux
def test_two_stages_of_more_than_half_of_the_memory_never_meet_on_a_worker(
    pair: Cluster, tmp_path: Path
) -> None:
    client, alone = (client_at(tmp_path / name, SEARCHES) for name in ("client", "alone"))
    estimate(client, a=3 * GIB // 2, b=3 * GIB // 2)
    names = [RECIPE.format(name) for name in "ab"]
    with distributed.Client(scheduler_file=pair.scheduler, set_as_default=False) as watcher:
        watcher.get_task_stream()  # records from here on
        run = pair.build(client, *names)
        assert run.returncode == 0, run.stdout + run.stderr
        tasks = tasks_of(pair, watcher.get_task_stream())
    nodes = [task for task in tasks if task.node is None]
    parts = [task for task in tasks if task.node is not None]
    assert parts
    assert len(nodes) == len(pair.records()[0])
    recipes = {key for key, document in stored(pair).items() if document.get("stage") == "recipe"}
    first, second = (node for node in nodes if node.key in recipes)
    # Dask's clock of a part begins before it asks for room: PresentNode's own test is above.
    assert first.worker != second.worker or not first.start < second.start < first.stop
    assert first.worker != second.worker or not second.start < first.start < second.stop
    alone.npumake("build", *names)
    assert artifacts(client) == artifacts(alone)


def stored(here: Cluster) -> dict[str, dict[str, str]]:
    """What the workers have stored: the key documents, by key."""
    return {
        f"{path.parent.name}{path.stem}": json.loads(path.read_bytes())["document"]
        for path in here.root.glob("*/cache/records/*/*.json")
    }


def tasks_of(here: Cluster, stream: list[dict[str, object]]) -> list[Task]:
    """What ran to its end. The store of its worker says of which node a part is."""
    documents = {f"npumake-part-{key}": document for key, document in stored(here).items()}
    return [
        Task(
            key.removeprefix("npumake-"),
            documents[key]["node"] if key in documents else None,
            str(entry["worker"]),
            min(span["start"] for span in entry["startstops"]),
            max(span["stop"] for span in entry["startstops"]),
        )
        for entry in stream
        if (key := str(entry["key"])).startswith("npumake-") and entry["status"] == "OK"
    ]


@slow
@linux
def test_a_stage_larger_than_every_worker_is_told_of_and_runs(
    pair: Cluster, tmp_path: Path
) -> None:
    client, alone = (client_at(tmp_path / n, SEARCHES.replace("9991", "9993")) for n in ("c", "l"))
    estimate(client, a=1024 * GIB)
    run = pair.build(client, RECIPE.format("a"))
    assert "@a:rdk-x5/recipe" in made(run, "made"), run.stdout + run.stderr
    assert "may need 1024.0 GiB of memory and runs on the largest worker" in run.stdout
    alone.npumake("build", RECIPE.format("a"))
    assert artifacts(client) == artifacts(alone)


@slow
@linux
def test_a_stage_whose_only_large_worker_is_lost_runs_on_another(tmp_path: Path) -> None:
    with cluster(tmp_path / "c") as here:
        here.start_worker("small", "--memory-limit", "1GiB")
        large = here.start_worker("large", "--memory-limit", "4GiB")
        assert eventually(lambda: len(workers_of(here)) == 2)
        client, alone = (client_at(tmp_path / n, SEARCHES) for n in ("client", "alone"))
        estimate(client, a=3 * GIB)
        process = subprocess.Popen(
            here.arguments(RECIPE.format("a")),
            cwd=client.root,
            env={**here.environment(client.root), "NPUMAKE_CLUSTER_WAIT": "5"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("digits:statistics" in line for line in lines)  # the recipe is next
        end(large)
        rest, _ = process.communicate()
        assert process.returncode == 0, rest
        assert " on small" in rest
        alone.npumake("build", RECIPE.format("a"))
        assert artifacts(client) == artifacts(alone)


@slow
@linux
def test_the_peak_of_a_node_is_kept_for_the_next_build(pair: Cluster, tmp_path: Path) -> None:
    client = client_at(tmp_path / "w", SEARCHES.replace("9991", "9994"))
    estimate(client, b=1)
    run = pair.build(client, RECIPE.format("a"))
    table = json.loads((client.root / "cache" / "peaks.json").read_bytes())
    assert table.pop(RECIPE.format("b")) == 1  # not built here
    names = {name.removeprefix("digits").removeprefix(":") for name in table}
    assert names == made(run, "made") != set()
    assert all(1 << 20 < size < 2 * GIB for size in table.values())


@slow
@linux
def test_a_worker_that_announces_no_memory_gets_no_node(tmp_path: Path) -> None:
    with cluster(tmp_path / "c") as here:
        lines = subprocess.run(
            [*PYTHON, "npumake", "worker"],
            cwd=here.root,
            env=here.environment(here.root),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        (resources,) = (line for line in lines if "RESOURCES" in line)
        plain = f'-m distributed.cli.dask_worker --no-dashboard --scheduler-file "{here.scheduler}"'
        here.start("bare", "sh", "-c", f'{resources}; exec "{sys.executable}" {plain}')
        run = here.build(client_at(tmp_path / "w"))
        assert run.returncode == 4
        assert "was not started by `npumake worker`" in run.stdout
