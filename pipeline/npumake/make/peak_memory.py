"""Peak memory: what a node may need, so that a cluster finds room for it.

The estimate is the peak of the node's latest run on a worker. Before its first run it follows from
the sizes of its models (npumake.stages.peaks). A wrong estimate costs time, or a worker; it
changes no artifact.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cache.publish import replacing
from npumake.stages.peaks import OTHER_PEAK, PEAKS

if TYPE_CHECKING:
    from npumake.make.build import Build
    from npumake.make.node import Node

MIB = 1 << 20
# The peak is a line of the first; a 5 in the second resets it (man 5 proc).
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """The peak of this process since the object was created."""

    def __init__(self) -> None:
        try:
            RESET.write_text("5", encoding="ascii")
            self._is_measured = True
        except OSError:
            self._is_measured = False

    @property
    def size(self) -> int | None:
        """Bytes; None where the system does not tell."""
        if not self._is_measured:
            return None
        lines = (line.split() for line in STATUS.read_text(encoding="utf-8").splitlines())
        return next((int(line[1]) * 1024 for line in lines if line[:1] == ["VmHWM:"]), None)


class PeakTable:
    """Measured peaks in bytes by the node's name, in the file `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fresh: dict[str, int] = {}

    def of(self, name: str) -> int | None:
        return self._fresh.get(name, self._stored.get(name))

    def remember(self, name: str, size: int) -> None:
        self._fresh[name] = size

    def save(self) -> None:
        """Writes the table if it changed, merged with the entries of other processes."""
        if self._fresh:
            table = _read(self._path) | self._fresh
            with replacing(self._path) as temporary:
                temporary.write_text(
                    json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8"
                )

    @cached_property
    def _stored(self) -> dict[str, int]:
        return _read(self._path)


def estimated_peak(build: Build, node: Node) -> int:
    """The bytes that the stage of `node` may need; its inputs are current."""
    measured = build.memory.peaks.of(node.name)
    if measured is not None:
        return measured
    peak = PEAKS.get(node.stage, OTHER_PEAK)
    inputs = map(build.plan.node, node.inputs.values())
    models = [build.artifact(source) for source in inputs if source.is_model]
    models += [Path(file.path) for file in build.sources(node).get("model.path", ())]
    return MIB * peak.mib + peak.per_model_byte * sum(path.stat().st_size for path in models)


def _read(path: Path) -> dict[str, int]:
    """Entries that are no sizes are dropped, and so is a damaged file."""
    try:
        table = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    entries = table.items() if isinstance(table, dict) else ()
    return {name: size for name, size in entries if type(size) is int and size > 0}
