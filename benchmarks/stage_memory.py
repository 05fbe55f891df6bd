"""The peak memory of each stage, in a process of its own that makes one node.

    NPUMAKE_SHARED=../shared python benchmarks/stage_memory.py [--models yolox] [--samples 50 200]
                                   [--calibration '{recipe: best}'] [--tree /path/to/a/checkout]

The process has the imports of npumake and the artifacts in front of the node; MB is its largest
resident size. That of its largest child, behind a +, is at least its own at the start of the child.
Stages that no number of samples makes larger have a ratio of about 1.

Measured by 50 / 200 samples, the three largest stages of a project:

                            recipe        calibrated    comparison
    mobilenet, default      276 / 234     198 / 222     223 / 213
    squeezenet, default     372 / 321     298 / 269     421 / 390
    yolox, default          538 / 437     208 / 228     485 / 523
    yolox, kl                95 /  98      88 /  88     474 / 483   (650 / 657 before)
    yolox, best             585 / 491     259 / 267     615 / 614

Below 64 samples a search has two folds. These are figures of sessions that kept the bytes of their
model, and the tensors of a run twice. Without, `best` of yolox takes 531, 222 and 506 MB (50
samples): no stage takes more than 600.

At 416 x 416 yolox takes 701 for `recipe` and 647 for `comparison` (`default`, 50 samples; 916 of
the latter, without the imports, before samples of more than 256 MB were compared one by one), the
other stages at most 341. The search peaks where it observes the last rescaled model; the process
has 173 in front of the search and 512 behind it. Half of the observer's buffers left 703;
MALLOC_ARENA_MAX=1 638, and MALLOC_MMAP_THRESHOLD_ of 4 MB 628.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from passes import PROJECT, lay_out

# Nothing but npumake is imported there, as in a build.
CHILD = """
import json, resource, sys
from pathlib import Path
from npumake.cli.projects import builds
from npumake.make.maker import make
((_, build),) = builds(Path.cwd())
for name in sys.argv[1:]:
    make(build, build.plan.node(name))
lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
own = int(lines["VmHWM"].split()[0]) * 1024
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
names = [node.name for node in build.plan.nodes]
print(json.dumps([names, [own // 10**6, children // 10**6]]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["mobilenet", "squeezenet", "yolox"])
    parser.add_argument("--samples", nargs="+", type=int, default=[50, 200])
    parser.add_argument("--calibration", default="{method: default}")
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1])
    options = parser.parse_args()
    for name in options.models:
        print(f"{name}, {options.calibration}: MB by {options.samples} samples", flush=True)
        show([peaks(name, count, options) for count in options.samples])


def show(columns: list[dict[str, tuple[int, int]]]) -> None:
    for stage in columns[0]:
        own, children = zip(*(column[stage] for column in columns), strict=True)
        figures = "".join(
            f"{a:6} +{b:<4}" if b else f"{a:6}      " for a, b in zip(own, children, strict=True)
        )
        print(f"  {stage:<18}{figures} x {own[-1] / own[0]:.2f}", flush=True)


def peaks(name: str, count: int, options: argparse.Namespace) -> dict[str, tuple[int, int]]:
    """MB of each stage and of its children."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        lay_out(name, folder, count)
        facts = json.loads((folder / "project.json").read_text())
        text = PROJECT.format(**facts, calibration=options.calibration)
        (folder / "project" / "project.yaml").write_text(text)
        nodes, _ = child(folder, options.tree)
        return {node: child(folder, options.tree, node)[1] for node in nodes}


def child(folder: Path, tree: Path, *nodes: str) -> tuple[list[str], tuple[int, int]]:
    """All nodes of the project, and the MB of the process that made these, and of its children."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "pipeline"),
        "OPENBLAS_NUM_THREADS": "1",  # as in the CLI
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *nodes],
        cwd=folder / "project",
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    names, (own, children) = json.loads(done.stdout.splitlines()[-1])
    return names, (own, children)


if __name__ == "__main__":
    main()
