"""Sealed builds: those of projects whose seal (npumake.make.seals) holds. Imports little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npumake.errors import PipelineError, ProjectError
from npumake.make.seals import Seals

if TYPE_CHECKING:
    from npumake.make.build import Build
    from npumake.make.node import Node


class SealedNode(NamedTuple):
    """The part of a node that doit and its reporter use; fields as in npumake.make.node."""

    name: str
    stage: str
    summary: str
    path: str
    inputs: Mapping[str, str]
    twin: str | None

    @property
    def group(self) -> str:
        return self.name.partition(":")[0]

    @property
    def short(self) -> str:
        return self.name.partition(":")[2]

    @property
    def joins(self) -> bool:
        return any(":" in build for build in self.inputs)


class SealedBuild:
    """The build of a project whose seal holds, with the interface for doit of
    npumake.make.build.Build.

    The project is planned only if a node is built all the same (doit -a), or something has run in
    this process.
    """

    def __init__(self, directory: Path, seals: Seals, read: Callable[[Path], Build]) -> None:
        self.directory = directory
        self.seals = seals
        self._read = read
        entry = seals.entries[str(directory)]
        self.nodes = tuple(SealedNode(*fields) for fields in entry["nodes"])

    @cached_property
    def opened(self) -> Build:
        """The project, planned. Raises PipelineError."""
        return self._read(self.directory)

    def node(self, name: str) -> Node:
        """The node in full. Raises PipelineError."""
        if name not in self.opened.plan.by_name:
            hint = "run it again"
            raise ProjectError(f"the plan of `{name}` has changed meanwhile", hint=hint)
        return self.opened.plan.node(name)

    def artifact(self, node: SealedNode) -> Path:
        return self.directory / node.path

    def is_current(self, node: SealedNode) -> bool:
        if self.seals.is_trusted:
            return True
        try:
            return self.opened.is_current(self.node(node.name))
        except PipelineError:
            return False
