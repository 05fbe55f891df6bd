"""The artifacts in use: by the workspace's projects, by git refs, by pins, by uploads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from npumake.cache.inventory import Inventory
from npumake.cache.local import LocalStore
from npumake.cache.pins import pin_names, pinned
from npumake.cache.sweep import Marks
from npumake.cli.git_refs import checked_out
from npumake.cli.projects import NamedBuild, builds, project_directories, read_builds
from npumake.errors import PipelineError
from npumake.make.build import Build
from npumake.make.memory import BuildMemory, workspace
from npumake.make.roots import NodeKeys, node_keys


def workspace_builds(folders: Sequence[Path] = ()) -> Iterator[NamedBuild]:
    """All projects of the workspace around this folder, and of those at `folders`."""
    for folder in dict.fromkeys(workspace(path) for path in (Path.cwd(), *folders)):
        yield from builds(folder)


def workspace_marks(usable: Iterable[Build], contents: Inventory, store: LocalStore) -> Marks:
    """The artifacts of these builds, pins and pending uploads. Raises CacheError for a damaged
    pin."""
    keys: dict[str, str] = {}
    codes: set[str] = set()
    for build in usable:
        build_keys = keys_in(build, contents)
        keys |= build_keys.names
        codes |= build_keys.codes
        build.memory.save()
    for name in pin_names(store.root):
        keys = {**{key: f"pin {name}" for key in pinned(store.root, name)}, **keys}
    for path in _files(store.root / "outbox"):
        keys.setdefault(path.name, "upload")
    return Marks(keys, frozenset(codes))


def keys_in(build: Build, contents: Inventory) -> NodeKeys:
    digests = {entry.key: entry.digest for entry in contents.entries if entry.digest}
    return node_keys(build, digests.get)


def ref_marks(ref: str, contents: Inventory, store: LocalStore) -> tuple[Marks, list[str]]:
    """The artifacts of this workspace's projects at a git ref, and the nodes whose keys cannot be
    known. Raises PipelineError."""
    keys: dict[str, str] = {}
    unknown: list[str] = []
    with checked_out(workspace(Path.cwd()), ref) as copy:
        # Nothing is saved: the table of files would name the copy's.
        memory = BuildMemory(store.root)
        for _, build in read_builds(project_directories(copy), memory):
            if isinstance(build, PipelineError):
                raise build
            build_keys = keys_in(build, contents)
            keys |= {key: f"{name} at {ref}" for key, name in build_keys.names.items()}
            unknown += build_keys.unknown
    return Marks(keys), unknown


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
