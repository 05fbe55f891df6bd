"""Random faults of a cluster: the bytes stay those of one process, and only what was hit runs
again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from clusters import Cluster, artifacts, client_at, cluster, end
from processes import LIMIT
from remote_servers import faulty
from workspaces import Workspace, few

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="ends processes as Linux does"),
]
SERIES, FAULTS = 10, 5  # by NPUMAKE_EVERY=1 all 50, else those below
IN_CI = {(0, 0), (0, 1)}
ATTEMPTS = 4  # of a client, which is started again where the fault ended it
PAUSE_S = 3.0  # of a slow worker


@dataclass
class Machines:
    """Two workers, which come back under another name when they end, and the client."""

    cluster: Cluster
    workers: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)
    scheduler: int = 0  # how often it came back
    client: subprocess.Popen[bytes] | None = None
    count: int = 0

    def repair(self) -> None:
        self.workers = [worker for worker in self.workers if worker[1].poll() is None]
        while len(self.workers) < 2:
            self.count += 1
            name = f"worker{self.count}"
            self.workers.append((name, self.cluster.start_worker(name)))

    def any_worker(self, rng: random.Random) -> tuple[str, subprocess.Popen[bytes]]:
        return rng.choice(self.workers)


def kill_worker(machines: Machines, rng: random.Random) -> None:
    end(machines.any_worker(rng)[1])


def kill_client(machines: Machines, _: random.Random) -> None:
    assert machines.client is not None
    machines.client.kill()


def restart_scheduler(machines: Machines, _: random.Random) -> None:
    (scheduler,) = [p for p in machines.cluster.processes if "dask_scheduler" in str(p.args)]
    end(scheduler)
    machines.cluster.processes.remove(scheduler)
    machines.scheduler += 1
    machines.cluster.start_scheduler(f"scheduler{machines.scheduler}")


def take_disk(machines: Machines, rng: random.Random) -> None:
    """Ends with the round: `one_round` replaces the worker."""
    name, _ = machines.any_worker(rng)
    cache = machines.cluster.root / name / "cache"
    with suppress(FileNotFoundError, FileExistsError):  # it has no cache yet, or lost it before
        cache.rename(cache.with_name("lost"))
        cache.touch()


def slow_worker(machines: Machines, rng: random.Random) -> None:
    group = machines.any_worker(rng)[1].pid

    def resume() -> None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGCONT)

    os.killpg(group, signal.SIGSTOP)
    threading.Timer(PAUSE_S, resume).start()


class Fault(NamedTuple):
    """`hit` is the number of workers whose present node and part may run again."""

    strike: Callable[[Machines, random.Random], None]
    hit: int


FAULT_KINDS = (
    Fault(kill_worker, 1),
    Fault(kill_client, 2),
    Fault(restart_scheduler, 2),
    Fault(take_disk, 1),
    Fault(slow_worker, 0),
)


def variants(series: int) -> str:
    """One for each fault, whose recipe is a search of its own."""
    shares = (0.99 + (series * FAULTS + number) / 1e4 for number in range(FAULTS))
    rows = (
        f"v{number}: {{calibration: {{method: default, percentile: {share:.4f}}}}}"
        for number, share in enumerate(shares)
    )
    return "\n".join(rows) + "\n"


def compiled(number: int) -> str:
    return f"digits@v{number}:rdk-x5/compiled"


@contextmanager
def machines_at(root: Path) -> Iterator[Machines]:
    with faulty() as server, cluster(root, remote=server.url) as here:
        machines = Machines(here)
        machines.repair()
        yield machines


def build(
    machines: Machines, root: Path, series: int, number: int, strike: Callable[[], None]
) -> Workspace:
    """Builds in a new project until that succeeds; strikes during the first attempt."""
    for attempt in range(ATTEMPTS):
        client = client_at(root / f"{number}-{attempt}", variants(series))
        log = client.root / "log"
        with log.open("wb") as file:
            machines.client = subprocess.Popen(
                machines.cluster.arguments(compiled(number)),
                cwd=client.root,
                env=machines.cluster.environment(client.root),
                stdout=file,
                stderr=file,
            )
        if attempt == 0:
            strike()
        stop = time.monotonic() + 4 * LIMIT
        while machines.client.poll() is None and time.monotonic() < stop:
            machines.repair()
            time.sleep(0.1)
        assert "Traceback" not in log.read_text()
        if machines.client.returncode == 0:
            return client
        assert machines.client.returncode in (4, 5, -signal.SIGKILL), log.read_text()
    raise AssertionError(log.read_text())


@pytest.mark.parametrize("series", few(range(SERIES), lambda series: series == 0))
def test_faults_change_no_byte_and_repeat_only_what_they_hit(series: int, tmp_path: Path) -> None:
    rng = random.Random(series)
    numbers = few(range(FAULTS), lambda number: (series, number) in IN_CI)
    alone = client_at(tmp_path / "alone", variants(series))
    alone.npumake("build", *map(compiled, numbers))
    single, allowed = artifacts(alone), 0
    kinds = rng.sample(FAULT_KINDS, len(FAULT_KINDS))
    with machines_at(tmp_path / "c") as machines:
        for number in numbers:
            fault, moment = kinds[number], rng.uniform(0.0, 8.0)

            def strike(fault: Fault = fault, moment: float = moment) -> None:
                time.sleep(moment)
                fault.strike(machines, rng)

            files = artifacts(build(machines, tmp_path, series, number, strike))
            assert files
            assert files.items() <= single.items()
            allowed += 2 * fault.hit
            assert repeats(machines.cluster) <= allowed, fault
            retire_broken(machines)


def repeats(here: Cluster) -> int:
    """How often a node or a part was made once more."""
    return sum(counts.total() - len(counts) for counts in here.records())


def retire_broken(machines: Machines) -> None:
    """Ends the workers that have lost their disk."""
    for name, process in machines.workers:
        if (machines.cluster.root / name / "cache").is_file():
            end(process)
    machines.repair()
