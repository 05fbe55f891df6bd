"""Memory: everything that builds store, in one cache directory shared by a workspace.

blobs/ records/   the store: artifacts by content, and their records, by key
files.json        digests of files, trusted by signature
peaks.json        the memory that nodes needed on a cluster, by node
sources.json      the imports of the package's sources, by content
stages.json       the declarations of the stages, sealed with the digest of the package
seals/            projects that are current as a whole, with the status of their files
closures/         the modules behind each `code` digest, so that `why` can name them; canonical
                  JSON, so that the name of a file is its own digest
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npumake.cache.local import LocalStore
from npumake.cache.locks import remove_free, turn
from npumake.cache.publish import replacing
from npumake.cache.signature import FileDigests
from npumake.cache.store import Record, Store
from npumake.digest import Json, canonical, of_document
from npumake.errors import CacheError, PipelineError, UnwritableError
from npumake.late import when_used
from npumake.lifetime.temporaries import sweep
from npumake.make.code import CodeClosure, SourceCode
from npumake.make.peak_memory import PeakTable
from npumake.make.places import cache_directory as cache_directory
from npumake.make.places import is_paranoid
from npumake.make.places import workspace as workspace
from npumake.make.remote_files import is_configured
from npumake.progress import tell

if TYPE_CHECKING:
    from npumake.cache.remote.layered import LayeredStore
    from npumake.cache.remote.outbox import Uploader
    from npumake.make.seals import Seals
with when_used("npumake.make.remote"):  # unused without a remote
    from npumake.make import remote


# The folders of the cache in which files are written.
SWEPT = ("", "scratch", "closures", "quarantine", "outbox", "remotes", "pins", "seals")


class PlanInputs(NamedTuple):
    """The inputs of a plan, beside our code: files relative to the project, and variables of the
    environment."""

    files: tuple[str, ...]
    variables: tuple[str, ...]


class BuildMemory:
    """The memory below `root`. `workspace` may configure a remote; without it there is none."""

    def __init__(
        self, root: Path, paranoid: bool | None = None, workspace: Path | None = None
    ) -> None:
        self.root = root
        self.workspace = workspace
        self.selected: frozenset[str] | None = None  # node names of this build, None for all
        self.restore_batch: Callable[[], None] | None = None  # of npumake.make.batch
        self.restored: set[Path] = set()  # projects fetched from the remote
        self.checked: dict[Path, PipelineError | None] = {}  # by project: the files it lacks
        self.read: dict[Path, PlanInputs] = {}  # by project: the inputs of its plan
        self.seals: Seals | None = None  # where current projects may be sealed
        if paranoid is None:
            paranoid = is_paranoid()
        self.near = LocalStore(root)
        self.files = FileDigests(root / "files.json", paranoid)
        self.code = SourceCode(self.files, root / "sources.json")
        self.peaks = PeakTable(root / "peaks.json")
        self._closures: set[str] = set()  # stored ones

    @cached_property
    def store(self) -> Store:
        """The near store, with the remote behind it if one is configured. Raises ProjectError.

        `near` only has the local store, and reads no configuration.
        """
        return self.layered or self.near

    @cached_property
    def layered(self) -> LayeredStore | None:
        if self.workspace is None:
            return None
        imported = self.root / "signed"  # trust.yaml decides on its records
        if not is_configured(self.workspace) and not os.path.isdir(imported):
            return None
        return remote.layered(self.near, self.workspace)

    def recall_here(self, key: str) -> Record | None:
        """The record of a key that is stored here and trusted; the remote is not queried."""
        record = self.near.recall(key)
        is_signed = record is None and os.path.exists(f"{self.root}/signed/{key[:2]}/{key[2:]}")
        return self.layered.stored(key) if is_signed and self.layered else record

    @property
    def note(self) -> str:
        """Why the remote is not used, if this process has tried."""
        layered = self.__dict__.get("layered")
        return layered.note if layered else ""

    def upload(self) -> None:
        """Uploads new artifacts while the build runs."""
        if self._uploader is not None:
            self._uploader.start()

    def finish_uploads(self) -> list[str]:
        """Waits for the uploads, within the limit of a build; returns notes for the user."""
        return [] if self._uploader is None else remote.finished(self._uploader)

    @cached_property
    def _uploader(self) -> Uploader | None:
        try:
            return self.layered.uploader() if self.layered else None
        except PipelineError:  # reported when a node was built
            return None

    @property
    def unstored(self) -> str:
        """Files that could not be stored, for lack of write permission."""
        return next(iter(self.near.unstored), "")

    def save(self) -> None:
        with self.doing_without():
            self.files.save()
        with self.doing_without():
            self.code.save()
        with self.doing_without():
            self.peaks.save()

    def keep(self, path: Path, data: bytes) -> None:
        """Writes a file that only makes the next build faster."""
        with self.doing_without(), replacing(path) as temporary:
            temporary.write_bytes(data)

    def sweep(self) -> None:
        """Removes the remains of killed processes. Blobs and records are written in scratch/."""
        for folder in SWEPT:
            sweep(self.root / folder)
        remove_free(self.root / "locks")

    def turn(self, key: str, name: str) -> AbstractContextManager[None]:
        """Inside the block no other build runs the stage of `key`, if locks work.

        `name` is that of its node, for the user.
        """
        return turn(
            self.root / "locks" / key, lambda: tell(f"waiting for another build to make {name}")
        )

    def keep_closure(self, code: CodeClosure) -> None:
        """Stores a closure. Every build that uses it restores a missing or damaged one."""
        if code.digest in self._closures:
            return
        self._closures.add(code.digest)
        path = self.root / "closures" / f"{code.digest}.json"
        try:
            is_whole = self.files.of(path) == code.digest
        except (FileNotFoundError, CacheError):
            is_whole = False
        if not is_whole:
            self.keep(path, canonical(code.modules))

    @contextmanager
    def doing_without(self) -> Iterator[None]:
        """Skips writes without permission."""
        try:
            yield
        except UnwritableError as error:
            self.near.unstored.append(error.what)

    def closure(self, digest: str) -> Json:
        """The modules behind a `code` digest; None if it is from elsewhere, or damaged."""
        if (current := self.code.modules(digest)) is not None:  # it may not be stored yet
            return dict(current)
        path = self.root / "closures" / f"{digest}.json"
        try:
            modules = json.loads(path.read_bytes())
            return modules if of_document(modules) == digest else None
        except (OSError, ValueError, TypeError):
            return None
