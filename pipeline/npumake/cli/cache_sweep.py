"""npumake cache gc, pin, unpin: removes unused artifacts."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path

from npumake import digest
from npumake.cache.inventory import Inventory, inventory
from npumake.cache.local import LocalStore
from npumake.cache.pins import pin as write_pin
from npumake.cache.pins import pin_names, unpin
from npumake.cache.sweep import Marks, Removal, SweepPlan, planned_sweep, swept
from npumake.cli.cache_contents import local_store, size_text
from npumake.cli.cache_roots import keys_in, ref_marks, workspace_builds, workspace_marks
from npumake.cli.projects import NOWHERE
from npumake.cli.screen import SCREEN
from npumake.cli.selection import whole_projects
from npumake.errors import CacheError, PipelineError, ProjectError
from npumake.make.build import Build
from npumake.make.memory import workspace

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([KMGT]?)(?:iB)?", re.IGNORECASE)
UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def size_argument(text: str) -> int:
    """`10G`, `1.5 GiB`, `4096` in bytes; K, M, G and T are powers of 1,024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size; write 500M, 10G or 1.5T")
    return int(float(match[1]) * 2 ** UNITS[match[2].upper()])


def sweep(arguments: argparse.Namespace) -> int:
    store = local_store()
    contents = inventory(store)  # first: artifacts used from now on stay
    marks = _marks(arguments, contents, store)
    plan = planned_sweep(contents, marks, time.time_ns(), arguments.max_size)
    removals = plan.removals if arguments.dry_run else swept(store.root, plan)
    _print(plan, removals, arguments)
    excess = 0 if arguments.max_size is None else plan.total - plan.freed - arguments.max_size
    if excess > 0:
        message = f"the artifacts in use are {size_text(excess)} larger than --max-size"
        raise CacheError(message, hint="npumake cache du shows by whom; npumake cache unpin NAME")
    return 0


def _marks(arguments: argparse.Namespace, contents: Inventory, store: LocalStore) -> Marks:
    """Raises the error of an unreadable project, since its artifacts in use are unknown."""
    usable: list[Build] = []
    for _, build in workspace_builds(arguments.workspace):
        if isinstance(build, PipelineError):
            raise build
        usable.append(build)
    if not usable and arguments.max_size is None:
        raise ProjectError("no project here: nothing would be in use", str(Path.cwd()), NOWHERE)
    marks = workspace_marks(usable, contents, store)
    keys = dict(marks.keys)
    for ref in arguments.ref:
        ref_keys, unknown = ref_marks(ref, contents, store)
        keys = {**ref_keys.keys, **keys}
        if unknown and not arguments.json:
            shown_names = ", ".join(unknown[:3])
            note = (
                f"note: {len(unknown)} nodes at {ref} have nothing in the cache: {shown_names} ..."
            )
            SCREEN.line(note, "yellow")
    return Marks(keys, marks.codes)


def _print(plan: SweepPlan, removals: Sequence[Removal], arguments: argparse.Namespace) -> None:
    freed = sum(removal.file.size for removal in removals)
    if arguments.json:
        rows = [
            {"file": r.file.name, "kind": r.file.kind, "size": r.file.size, "reason": r.reason}
            for r in removals
        ]
        document = {"removed": rows, "freed": freed, "left": plan.total - freed}
        print(digest.text({**document, "dry_run": arguments.dry_run}, indent=1))
        return
    verb = "would remove" if arguments.dry_run else "removed"
    for removal in removals:
        size = size_text(removal.file.size)
        SCREEN.line(f"{verb}  {size:>11}  {removal.file.name}  {removal.reason}")
    left = size_text(plan.total - freed)
    SCREEN.line(f"{verb} {len(removals)} files, {size_text(freed)}; {left} are left")


def pin(arguments: argparse.Namespace) -> int:
    """Pins the artifacts that are current here."""
    builds = whole_projects(arguments.projects, workspace(Path.cwd()))
    store = LocalStore(builds[0].memory.root)
    contents = inventory(store)
    local_keys = {entry.key for entry in contents.entries if entry.digest in contents.blobs}
    keys: dict[str, str] = {}
    for build in builds:
        wanted_keys = keys_in(build, contents).by_node
        keys |= {key: name for name, key in wanted_keys.items() if key in local_keys}
    if not keys:
        raise CacheError("no artifact of these projects is in the cache", hint="npumake build")
    write_pin(store.root, arguments.name, keys)
    SCREEN.line(f"{len(keys)} artifacts pinned as {arguments.name}")
    return 0


def remove_pin(arguments: argparse.Namespace) -> int:
    unpin(local_store().root, arguments.name)
    names = pin_names(local_store().root)
    SCREEN.line(f"{arguments.name} is no longer pinned; {len(names)} pins are left")
    return 0
