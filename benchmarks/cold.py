"""The time of a project's first build, against doit over as many trivial tasks.

    python benchmarks/cold.py [--runs 5]

The difference is the libraries (one import of onnx-ir and onnxruntime) and the stages themselves.
The last line has the rest.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from workspace import bare_doit, doit, lay_out, paired

IMPORTS = """
import npumake.make.maker, npumake.cli.tables
from npumake.stages.stage import every_stage
every_stage()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        root, bare = Path(folder) / "workspace", Path(folder) / "bare"
        root.mkdir()
        lay_out(root, copies=1)
        output = doit(root)
        stages = re.findall(r"made +digits000:(\S+) +([0-9.]+) s", output)
        bare_doit(bare, len(stages), current=False)

        def cold() -> None:
            shutil.rmtree(root / "cache")
            shutil.rmtree(root / "projects" / "digits000" / "out")
            doit(root)

        def imports() -> None:
            subprocess.run([sys.executable, "-c", IMPORTS], check=True)

        ours, yardstick, libraries = paired(runs, [cold, lambda: doit(bare), imports])
    for name, seconds in stages:
        print(f"{name:<22} {1000 * float(seconds):6.0f} ms")
    made = sum(float(seconds) for _, seconds in stages)
    print(f"{'cold build':<22} {1000 * ours:6.0f} ms   {ours / yardstick:.1f} x bare doit")
    print(f"{'  bare doit':<22} {1000 * yardstick:6.0f} ms   {len(stages)} trivial tasks")
    print(f"{'  libraries':<22} {1000 * libraries:6.0f} ms   imported once")
    print(f"{'  stages':<22} {1000 * made:6.0f} ms   in one of the runs")


if __name__ == "__main__":
    main()
