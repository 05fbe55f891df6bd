"""The projects of a directory for doit: sealed ones as they are, the others planned.

Imports little: if all are sealed, nothing else of npumake.make is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from npumake.errors import PipelineError
from npumake.make.places import cache_directory, project_directories, workspace
from npumake.make.sealed_build import SealedBuild
from npumake.make.seals import Seals

if TYPE_CHECKING:
    from npumake.make.build import Build
    from npumake.make.memory import BuildMemory

# A project's name with its build, or with the error that prevents it.
NamedEntry: TypeAlias = "tuple[str, SealedBuild | Build | PipelineError]"


class SealedProjects:
    """The projects at `top`, with one memory for all that are planned."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self.seals = Seals(top, cache_directory(top))

    def entries(self) -> Iterator[NamedEntry]:
        """Raises CacheError for an unusable cache."""
        directories = project_directories(self._top)
        self.seals.check(directories)
        for directory in directories:
            if str(directory) in self.seals.entries:
                yield directory.name, SealedBuild(directory, self.seals, self.opened)
            else:
                yield directory.name, self._entry(directory)
        if "memory" in self.__dict__:
            self.memory.save()

    def opened(self, directory: Path) -> Build:
        """A sealed project, planned. Raises PipelineError."""
        entry = self._entry(directory)
        if isinstance(entry, PipelineError):
            raise entry
        return entry

    @cached_property
    def memory(self) -> BuildMemory:
        from npumake.make.memory import BuildMemory

        memory = BuildMemory(self.seals.root, workspace=workspace(self._top))
        memory.sweep()
        memory.seals = self.seals
        return memory

    def _entry(self, directory: Path) -> Build | PipelineError:
        from npumake.cli.projects import read_builds

        ((_, entry),) = read_builds([directory], self.memory)
        return entry
