"""A cluster of real processes: a scheduler, and workers that share nothing but a remote cache."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from forks import run_python
from processes import environment, eventually
from remote_servers import free_port
from workspaces import REPO, Workspace, lay_out

PYTHON = (sys.executable, "-m")
KL = "kl: {calibration: {method: kl}}\n"  # the variant of most projects here


@dataclass
class Cluster:
    """A scheduler and workers, each with a near store of its own; and the clients' environment."""

    root: Path
    remote: str
    port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def scheduler(self) -> str:
        return str(self.root / "scheduler.json")

    def environment(self, machine: Path) -> dict[str, str]:
        return environment(
            "cluster",
            PYTHONPATH=str(REPO / "pipeline"),
            XDG_CONFIG_HOME=str(self.root / "config"),
            NPUMAKE_CACHE=str(machine / "cache"),
            NPUMAKE_CACHE_REMOTE=self.remote,
            NPUMAKE_CLUSTER_WAIT="60",
        )

    def start(self, name: str, *command: str, **more: str) -> subprocess.Popen[bytes]:
        folder = self.root / name
        folder.mkdir()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**self.environment(folder), **more},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def make_keys(self) -> None:
        """Those by which the machines trust each other's artifacts."""
        environment = self.environment(self.root)
        run = run_python(
            "-m", "npumake", "cache", "keygen", folder=self.root, environment=environment
        )
        assert run.returncode == 0, run.stderr

    def start_scheduler(self, name: str) -> subprocess.Popen[bytes]:
        listening = ("--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        file = ("--scheduler-file", self.scheduler)
        module = "distributed.cli.dask_scheduler"
        process = self.start(name, *PYTHON, module, *listening, *file)
        assert eventually(Path(self.scheduler).exists)
        return process

    def start_worker(self, name: str, *options: str, **more: str) -> subprocess.Popen[bytes]:
        command = (*PYTHON, "npumake", "worker", self.scheduler, "--name", name, *options)
        return self.start(name, *command, **more)

    def arguments(self, *arguments: str) -> list[str]:
        cluster = ("--executor", "dask", "--scheduler", self.scheduler)
        return [*PYTHON, "npumake", "build", *cluster, *arguments]

    def build(self, client: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
        """In a fork; that a new interpreter does the same is seen by who calls `arguments`."""
        _, *command = self.arguments(*arguments)
        environment = self.environment(client.root)
        return run_python(*command, folder=client.root, environment=environment)

    def records(self, *workers: str) -> tuple[Counter[str], Counter[str]]:
        """How often these workers, or all, have made each node and each part of a stage, by key:
        only who makes one has its record."""
        nodes, parts = Counter[str](), Counter[str]()
        for folder in [self.root / name for name in workers] or [*self.root.iterdir()]:
            for record in folder.glob("*/records/*/*.json"):
                stage = json.loads(record.read_bytes())["document"]["stage"]
                (parts if stage == "part" else nodes)[f"{record.parent.name}{record.stem}"] += 1
        return nodes, parts

    def part_names(self) -> set[str]:
        """The functions of the parts that workers have made."""
        documents = (
            json.loads(record.read_bytes())["document"]
            for record in self.root.glob("*/cache/records/*/*.json")
        )
        return {document["part"] for document in documents if document["stage"] == "part"}

    def runs(self, *workers: str) -> int:
        """How many nodes these workers have made."""
        return self.records(*workers)[0].total()


@contextmanager
def cluster(root: Path, *workers: str, remote: str = "") -> Iterator[Cluster]:
    (root / "far").mkdir(parents=True)
    here = Cluster(root, remote or f"file://{root / 'far'}")
    try:
        here.make_keys()
        here.start_scheduler("scheduler")
        for name in workers:
            here.start_worker(name)
        yield here
    finally:
        for process in here.processes:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and its children as the kernel does when memory is short."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def client_at(root: Path, variants: str = KL) -> Workspace:
    client = lay_out(root)
    client.project.joinpath("variants.yaml").write_text(variants)
    return client


def artifacts(client: Workspace) -> dict[str, bytes]:
    """The files of `out/` by name."""
    out = client.project / "out"
    files = (path for path in out.rglob("*") if path.is_file() and ".npumake" not in path.parts)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}
