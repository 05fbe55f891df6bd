"""The documented limits of a chip, held against a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npumake.graph import Node
from npumake.targets.expression import Breach, Look, broken
from npumake.targets.facts import facts_of
from npumake.targets.parts import parts_of
from npumake.targets.target import Limit, Target


@dataclass(frozen=True)
class Beyond:
    """A limit that a node breaks, and what to change in the model. `part` names the part of a
    fused node that breaks it."""

    breach: Breach
    change: str
    part: str = ""

    def __str__(self) -> str:
        return f"{f'{self.part}: ' if self.part else ''}{self.breach}; {self.change}"


def beyond(node: Node, target: Target) -> tuple[Beyond, ...]:
    """Every documented limit that the node, or a part of it, is beyond. A limit on what is not
    known before the model runs counts as kept. Raises ProjectError for a limit that is not a
    condition."""
    breaches = (
        Beyond(breach, limit.change, "" if part is node else f"{part.name} ({part.op_type})")
        for part in parts_of(node, target)
        for limit, look in _limits_with_facts(part, target)
        for breach in broken(limit.holds, look)
    )
    return tuple(breaches)


def _limits_with_facts(part: Node, target: Target) -> Iterator[tuple[Limit, Look]]:
    """The limits of the operator, each with the facts of the node."""
    look = facts_of(part)
    return ((limit, look) for limit in target.limits_of(part.op_type))
