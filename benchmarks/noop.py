"""The time of a build with nothing to do, against doit over as many trivial tasks.

    python benchmarks/noop.py [--copies 1 100] [--runs 7]

The limit is doit's own time. The difference is one stat per file, and one file with their seal.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from workspace import bare_doit, doit, lay_out, paired


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    print(f"{'projects':>8} {'nodes':>6} {'files':>6} {'no-op':>9} {'bare doit':>9} {'ratio':>6}")
    for copies in given.copies:
        print(row(copies, given.runs))
    (floor,) = paired(given.runs, [lambda: subprocess.run([sys.executable, "-c", "pass"])])
    print(f"an interpreter that does nothing: {1000 * floor:.0f} ms")


def row(copies: int, runs: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "projects"
        root.mkdir()
        lay_out(root, copies)
        doit(root)
        doit(root)  # reads young files again
        nodes = int(doit(root).split()[0])  # "12 current in ..."; and seals what is old enough
        files = sum(path.is_file() for path in root.glob("projects/*/samples/*"))
        bare = Path(folder) / "bare"
        bare_doit(bare, nodes, current=True)
        ours, yardstick = paired(runs, [lambda: doit(root), lambda: doit(bare)])
    return (
        f"{copies:8} {nodes:6} {files:6} {1000 * ours:6.0f} ms {1000 * yardstick:6.0f} ms "
        f"{ours / yardstick:6.2f}"
    )


if __name__ == "__main__":
    main()
