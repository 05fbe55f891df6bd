"""The time of a build with nothing to do, against doit over as many trivial tasks.

    python benchmarks/noop.py [--copies 1 100] [--runs 7] [--remote]

The limit is doit's own time: what is above it is one stat per file, and one file with their seal.
With --remote the workspace names a remote cache, whose server counts the connections: none.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from workspace import bare_doit, doit, lay_out, paired


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--remote", action="store_true")
    given = parser.parse_args()
    print(f"{'projects':>8} {'nodes':>6} {'files':>6} {'no-op':>9} {'bare doit':>9} {'ratio':>6} "
          f"{'connections':>11}")  # fmt: skip
    for copies in given.copies:
        print(row(copies, given.runs, given.remote))
    (floor,) = paired(given.runs, [lambda: subprocess.run([sys.executable, "-c", "pass"])])
    print(f"an interpreter that does nothing: {1000 * floor:.0f} ms")


def row(copies: int, runs: int, remote: bool) -> str:
    with (
        tempfile.TemporaryDirectory() as folder,
        remote_of_nothing() as (url, connections),
    ):
        root = Path(folder) / "projects"
        root.mkdir()
        lay_out(root, copies)
        doit(root)
        if remote:
            (root / "npumake.yaml").write_text(f"cache: {{remote: {url}}}\n")
        doit(root)  # reads young files again
        nodes = int(doit(root).split()[0])  # "12 current in ..."; and seals what is old enough
        files = sum(path.is_file() for path in root.glob("projects/*/samples/*"))
        bare = Path(folder) / "bare"
        bare_doit(bare, nodes, current=True)
        connections.clear()
        ours, yardstick = paired(runs, [lambda: doit(root), lambda: doit(bare)])
    return (
        f"{copies:8} {nodes:6} {files:6} {1000 * ours:6.0f} ms {1000 * yardstick:6.0f} ms "
        f"{ours / yardstick:6.2f} {len(connections):11}"
    )


@contextmanager
def remote_of_nothing() -> Iterator[tuple[str, list[socket.socket]]]:
    """The URL of a server that answers nothing, and the connections that it has got."""
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # the benchmark has ended
                    return
                connections.append(connection)
                connection.close()

        Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", connections


if __name__ == "__main__":
    main()
