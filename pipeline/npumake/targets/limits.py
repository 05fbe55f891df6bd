"""The documented limits of a chip, held against a node."""

from __future__ import annotations

from dataclasses import dataclass

from npumake.graph import Node
from npumake.targets.expression import Breach, broken
from npumake.targets.facts import facts_of
from npumake.targets.target import Target


@dataclass(frozen=True)
class Beyond:
    """A limit that a node breaks, and what to change in the model."""

    breach: Breach
    change: str

    def __str__(self) -> str:
        return f"{self.breach}; {self.change}"


def beyond(node: Node, target: Target) -> tuple[Beyond, ...]:
    """Every documented limit that the node is beyond. A limit on what is not known before the model
    runs counts as kept. Raises ProjectError for a limit that is not a condition."""
    look = facts_of(node)
    return tuple(
        Beyond(breach, limit.change)
        for limit in target.limits_of(node.op_type)
        for breach in broken(limit.holds, look)
    )
