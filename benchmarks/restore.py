"""Time and memory of a clean machine to restore projects from a warm remote.

    python benchmarks/restore.py [--projects 1 100] [--mebibytes 1024] [--latency 50] [--runs 1]

The limit is 1.5 times the time of downloading and hashing the same bytes: THREADS connections, each
file written and its SHA-256 computed on the way. The server is a process on loopback that waits
`latency` milliseconds before each response. The reference needs only half of the requests, because
it knows the names of the artifacts; a build queries a record first.

What is above the yardstick: an artifact is hashed and written twice, to the cache and from there to
`out/`, where a user may edit it; the interpreter's start and the plan (70 ms of CPU a project); and
one round trip for each level of the build's graph, as a key needs the digests of its inputs.

The artifacts of the heavy stages are random bytes of the given total size, under the keys of real
projects. No stage runs, and none reads them.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import local
from typing import NamedTuple

from workspace import doit, lay_out

from npumake.cache.remote.envelope import packed
from npumake.cache.remote.keys import Secret, SigningKey, generate
from npumake.cache.store import Record
from npumake.cli.projects import read_builds
from npumake.digest import of_bytes, of_document
from npumake.make.build import Build
from npumake.make.memory import BuildMemory

LARGE = ("original_float", "optimized_float", "samples", "statistics", "calibrated", "quantized")
THREADS = 8
CHUNK = 1 << 20
SECONDS = 600.0  # that making an artifact is said to take


BUILD = """
import resource, sys
from npumake.cli.main import main
code = main(["build"])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(used.ru_utime + used.ru_stime, int(peak) / 1024, file=sys.stderr)
sys.exit(code)
"""


class Cost(NamedTuple):
    """Seconds, those of CPU, and the peak of the memory in MiB; 0 where it does not count."""

    seconds: float
    cpu: float
    peak: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--latency", type=float, default=50.0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--serve", nargs=2, metavar=("FOLDER", "PORT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(Path(given.serve[0]), int(given.serve[1]), given.latency / 1000)
        return
    print(f"{'projects':>8} {'files':>6} {'MiB':>6} {'download':>9} {'restore':>9} {'ratio':>6} "
          f"{'their CPU':>15} {'memory':>8}")  # fmt: skip
    for copies in given.projects:
        with tempfile.TemporaryDirectory() as folder:
            print(row(Path(folder), copies, given), flush=True)


def row(root: Path, copies: int, given: argparse.Namespace) -> str:
    os.environ["XDG_CONFIG_HOME"] = str(root / "user")
    generate(root / "user" / "npumake" / "signing.key")
    (root / "far" / "cas").mkdir(parents=True)
    (root / "far" / "ac").mkdir()
    stock(root, copies, given.mebibytes << 20)
    names = sorted(path.name for path in (root / "far" / "cas").iterdir())
    size = sum(path.stat().st_size for path in (root / "far" / "cas").iterdir())
    with serving(root / "far", given.latency) as port:
        limits, costs = [], []
        for _ in range(given.runs):
            limits.append(download(port, names, root / "download"))
            costs.append(restore(root, copies, f"http://127.0.0.1:{port}"))
    limit, cost = min(limits), min(costs)
    return (
        f"{copies:8} {len(names):6} {size >> 20:6} {limit.seconds:7.2f} s {cost.seconds:7.2f} s "
        f"{cost.seconds / limit.seconds:6.2f} {limit.cpu:5.1f} s {cost.cpu:5.1f} s "
        f"{cost.peak:4.0f} MiB"
    )


# -- a warm remote -----------------------------------------------------------------------------


def stock(root: Path, copies: int, size: int) -> None:
    """Fills the far store for so many projects, with about `size` bytes."""
    real, many = root / "real", root / "many"
    for folder, number in ((real, 1), (many, copies)):
        folder.mkdir()
        lay_out(folder, number)
    doit(real)
    (small,) = builds(real, root / "memory")
    signing = SigningKey(Secret(file=root / "user" / "npumake" / "signing.key"))
    rng = random.Random(0)
    for build in builds(many, root / "memory"):
        heavy = sum(node.stage in LARGE for node in build.plan.nodes)
        for key, record, data in artifacts(build, small, size // copies // heavy, rng):
            (root / "far" / "cas" / record.digest).write_bytes(data)
            (root / "far" / "ac" / key).write_bytes(packed(signing.sign(key, record)))


def builds(folder: Path, memory: Path) -> list[Build]:
    found = read_builds(sorted(folder.glob("projects/*")), BuildMemory(memory))
    return [build for _, build in found if isinstance(build, Build)]


def artifacts(
    build: Build, small: Build, size: int, rng: random.Random
) -> Iterator[tuple[str, Record, bytes]]:
    """(key, record, bytes) of each node; those of LARGE stages are random and of that size."""
    digests: dict[str, str] = {}
    keys: dict[str, str] = {}
    for node in build.plan.nodes:
        inputs = {stage: digests[name] for stage, name in node.inputs.items()}
        document = build.document(replace(node, traced=()), inputs)
        document["traced"] = {name: keys[name] for name in node.traced}
        twin = next(other for other in small.plan.nodes if other.short == node.short)
        data = rng.randbytes(size) if node.stage in LARGE else small.artifact(twin).read_bytes()
        record = Record(document, of_bytes(data), len(data), SECONDS)
        key = keys[node.name] = of_document(document)
        digests[node.name] = record.digest
        yield key, record, data


# -- both ways to get it -----------------------------------------------------------------------


def restore(root: Path, copies: int, url: str) -> Cost:
    """A build on a clean machine."""
    here = root / "clean"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    lay_out(here, copies)
    shutil.copytree(root / "real" / "cache", here / "cache", ignore=only_code)
    environment = {**os.environ, "NPUMAKE_CACHE_REMOTE": url, "NPUMAKE_PARANOID": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as an installed package is compiled
    start = time.perf_counter()
    command = [sys.executable, "-c", BUILD]
    run = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if run.returncode or " made" in run.stdout.splitlines()[-1]:
        raise SystemExit(run.stdout + run.stderr)
    cpu, peak = map(float, run.stderr.splitlines()[-1].split())
    return Cost(seconds, cpu, peak)


def only_code(folder: str, names: Sequence[str]) -> set[str]:
    """What a build knows of our own code stays, as after an installation; no artifact does."""
    return {name for name in names if name not in ("sources.json", "stages.json")}


def download(port: int, names: Sequence[str], folder: Path) -> Cost:
    """The cost of THREADS connections that write and hash every artifact."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    connections = local()

    def fetch(name: str) -> None:
        if not hasattr(connections, "one"):
            connections.one = http.client.HTTPConnection("127.0.0.1", port)
        connections.one.request("GET", f"/cas/{name}")
        answer, sha = connections.one.getresponse(), hashlib.sha256()
        with (folder / name).open("wb") as file:
            while chunk := answer.read(CHUNK):
                sha.update(chunk)
                file.write(chunk)
        assert sha.hexdigest() == name

    start, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(fetch, names))
    cost = Cost(time.perf_counter() - start, time.process_time() - cpu)
    shutil.rmtree(folder)
    return cost


# -- the server --------------------------------------------------------------------------------


@contextmanager
def serving(folder: Path, latency: float) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, __file__, "--serve", str(folder), str(port)]
    with subprocess.Popen([*command, "--latency", str(latency)]) as process:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.05)
            yield port
        finally:
            process.kill()


def serve(folder: Path, port: int, latency: float) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # the header in one packet

        def do_GET(self) -> None:
            time.sleep(latency)
            try:
                file = (folder / self.path.lstrip("/")).open("rb")
            except FileNotFoundError:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            with file:
                self.send_response(200)
                self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
                self.end_headers()
                self.wfile.flush()
                self.connection.sendfile(file)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    Server(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
