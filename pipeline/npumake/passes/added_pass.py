"""Passes that installed packages add, for targets whose form names them."""

from __future__ import annotations

from collections.abc import Callable

from npumake import plugins
from npumake.errors import ProjectError, did_you_mean
from npumake.graph import Graph


def added_pass(name: str) -> Callable[[Graph], int]:
    """The pass of the entry point `name`. Raises ProjectError where no package adds it."""
    plugin = plugins.plugin(plugins.PASSES, name)
    if plugin is None:
        hint = did_you_mean(name, plugins.plugin_names(plugins.PASSES))
        raise ProjectError(f"no installed package adds the pass `{name}`", hint=hint)
    added: Callable[[Graph], int] = plugin.load()
    return added
