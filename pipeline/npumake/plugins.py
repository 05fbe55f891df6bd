"""Installed packages that add a chip, a dialect, a frontend or a pass, by their entry points.

    [project.entry-points."npumake.targets"]
    toy-npu = "toy_npu"                        # toy_npu/toy-npu.yaml, read as our own chips are
    [project.entry-points."npumake.dialects"]
    toyc = "toy_npu.toyc:TOYC"                 # a Dialect of npumake.project.vendor
    [project.entry-points."npumake.frontends"]
    toy = "toy_npu.reader:read_toy"            # reads `.toy`: ModelFile → Graph
    [project.entry-points."npumake.passes"]
    toy-npu = "toy_npu.passes:PASSES"          # for the chip: a tuple of Graph → changed places

Only a name that is not one of our own is looked up here, so a build without plugins reads no
metadata. A chip's file runs no code. The code of a plugin is in the keys: the distribution, its
version and every file of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from npumake.errors import ProjectError

TARGETS, DIALECTS = "npumake.targets", "npumake.dialects"
FRONTENDS, PASSES = "npumake.frontends", "npumake.passes"
NO_SOURCE = ("__pycache__",)


@dataclass(frozen=True)
class Plugin:
    """One entry point of an installed distribution. `value` is a module, or `module:attribute`."""

    group: str
    name: str
    value: str
    distribution: str
    version: str

    @property
    def module(self) -> str:
        return self.value.partition(":")[0].strip()

    @cached_property
    def package(self) -> Path:
        """The top-level package, or the file of a module outside a package.

        Raises ProjectError if it is not installed.
        """
        spec = find_spec(self.module.split(".")[0])
        if spec is None or not (spec.submodule_search_locations or spec.origin):
            raise self.error("is not installed whole")
        folders = list(spec.submodule_search_locations or ())
        return Path(folders[0] if folders else str(spec.origin)).resolve()

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file of the package, sorted, without Python's caches."""
        if self.package.is_file():
            return (self.package,)
        files = (file for file in self.package.rglob("*") if file.is_file())
        return tuple(sorted(file for file in files if not {*NO_SOURCE} & {*file.parts}))

    @property
    def data_file(self) -> Path:
        """`<name>.yaml` in the package that `value` names. Raises ProjectError."""
        folder = self.package.joinpath(*self.module.split(".")[1:])
        file = folder / f"{self.name}.yaml"
        if not file.is_file():
            raise self.error(f"holds no file `{self.name}.yaml` in `{self.module}`")
        return file

    def load(self) -> Any:
        """The object; imports its module. Raises ProjectError if there is none."""
        attribute = self.value.partition(":")[2].strip()
        try:
            return getattr(import_module(self.module), attribute)
        except (ImportError, AttributeError) as error:
            raise self.error(f"does not load: {error}") from error

    def error(self, what: str) -> ProjectError:
        hint = f"its entry point: {self.name} = {self.value}, in the group {self.group}"
        return ProjectError(f"plugin `{self.distribution}` {what}", hint=hint)


def plugin(group: str, name: str) -> Plugin | None:
    """The plugin of that name; None if no installed package has it.

    Raises ProjectError if two have it.
    """
    plugins = _installed(group, tuple(sys.path)).get(name, ())
    if len(plugins) > 1:
        duplicates = " and ".join(f"`{candidate.distribution}`" for candidate in plugins)
        raise ProjectError(
            f"{duplicates} both add `{name}` to {group}", hint="uninstall one of them"
        )
    return plugins[0] if plugins else None


def plugin_names(group: str) -> tuple[str, ...]:
    """All names that installed packages add, sorted."""
    return tuple(sorted(_installed(group, tuple(sys.path))))


@cache
def _installed(group: str, _path: tuple[str, ...]) -> Mapping[str, tuple[Plugin, ...]]:
    """By name, for one search path."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # loads the parser of e-mail

    plugins: dict[str, tuple[Plugin, ...]] = {}
    for entry in entry_points(group=group):
        if entry.dist is not None:
            added = Plugin(group, entry.name, entry.value, entry.dist.name, entry.dist.version)
            others = plugins.get(entry.name, ())
            plugins[entry.name] = others if added in others else (*others, added)
    return plugins
