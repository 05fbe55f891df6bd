"""PresentNode: the node of a worker process. A part of another node joins it if memory suffices.

A worker builds one node at a time. While the node waits for its parts, the process takes parts of
any node, and those of another one bring inputs of their own. A part that finds no room is refused
and goes back to its stage, which computes it itself. It must not wait here: its own stage may be
what the present node waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npumake.make.job import MachineError
from npumake.make.parts import Order

MIB = 1 << 20


class PresentNode:
    """`has_company` says whether a part of another node has run beside the present one."""

    def __init__(self) -> None:
        self.has_company = False
        self._key = self._name = ""
        self._memory = 0

    @contextmanager
    def begun(self, key: str, name: str, memory: int) -> Iterator[None]:
        """Inside the block the node with this key is the present one and holds `memory` bytes."""
        self._key, self._name, self._memory, self.has_company = key, name, memory, False
        try:
            yield
        finally:
            self._key, self._memory = "", 0

    def admit(self, part: Order, limit: int) -> None:
        """Raises MachineError if part and node together exceed `limit` bytes."""
        if part.node == self._key or not self._key:
            return
        if self._memory + part.memory > limit:
            sizes = f"{part.memory // MIB} MiB beside `{self._name}`, {self._memory // MIB} MiB"
            raise MachineError(f"no memory for a part: {sizes}, of {limit // MIB}")
        self.has_company = True


PRESENT = PresentNode()
