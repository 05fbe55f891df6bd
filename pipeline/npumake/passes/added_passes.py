"""Passes that an installed package adds for a chip of its own: they make the chip's form."""

from __future__ import annotations

from collections.abc import Callable

from npumake import plugins
from npumake.graph import Graph

Pass = Callable[[Graph], int]


def added_passes(target: str) -> tuple[Pass, ...]:
    """Those of the chip called `target`, in order; none of a chip of ours. Raises ProjectError."""
    plugin = plugins.plugin(plugins.PASSES, target)
    if plugin is None:
        return ()
    passes = plugin.load()
    if not isinstance(passes, tuple) or not all(map(callable, passes)):
        raise plugin.error(f"has no tuple of passes in `{plugin.value}`")
    return passes
