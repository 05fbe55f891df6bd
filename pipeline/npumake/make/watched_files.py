"""The files that a build reads, with their stamps, which show a change without reading them.

Polling: a build knows its files, in any folder, and stat of one takes a microsecond or two.
Notifications of the kernel would be needed for every folder above them; network file systems
and mounts of containers deliver none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from npumake.cache.signature import Signature, signature_of
from npumake.errors import PipelineError
from npumake.make.node import ProjectPlan
from npumake.project.files import FileSource, source_files

Stamps = Mapping[str, Signature | None]  # by path; None for a file that is absent


@dataclass(frozen=True)
class WatchedProject:
    """The files of a project: its YAML, `files` from elsewhere, and the files of `sources`."""

    directory: Path
    sources: tuple[FileSource, ...] = ()
    files: tuple[str, ...] = ()

    def with_file(self, path: str | None) -> WatchedProject:
        """The same with one more file; None: none."""
        files = {*self.files, *((path,) if path else ())}
        return replace(self, files=tuple(sorted(files)))

    def stamps(self) -> Stamps:
        return {path: signature_of(path) for path in sorted({*self._paths()})}

    def _paths(self) -> Iterator[str]:
        yield from (os.path.join(self.directory, name) for name in self.files)
        for pattern in ("*.yaml", "*.yml"):
            yield from map(str, self.directory.glob(pattern))
        for source in self.sources:
            try:
                yield from (path for _, path in source_files(self.directory, source))
            except PipelineError:  # the build reports it
                continue


def watched(directory: Path, plan: ProjectPlan, files: Iterable[str]) -> WatchedProject:
    sources = dict.fromkeys(source for node in plan.nodes for source in node.sources)
    return WatchedProject(directory, tuple(sources), tuple(sorted(files)))
