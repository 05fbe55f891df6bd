"""npumake cache ls, du, verify: the content of the store, its use, and damaged files."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from npumake import digest
from npumake.cache.inventory import Inventory, inventory
from npumake.cache.local import LocalStore
from npumake.cache.pins import pin_names, pinned
from npumake.cache.sweep import Marks, entries_in_use
from npumake.cli.cache_roots import workspace_builds, workspace_marks
from npumake.cli.screen import SCREEN
from npumake.errors import CacheError, PipelineError
from npumake.make.memory import cache_directory
from npumake.progress import listening

SHORT_KEY = 12  # characters
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def local_store() -> LocalStore:
    """The store of the current folder. Raises CacheError if there is none."""
    root = cache_directory(Path.cwd())
    if not root.is_dir():
        raise CacheError("there is no cache", str(root), "npumake build creates it")
    return LocalStore(root.absolute())


def size_text(size: int) -> str:
    """`1,023 bytes`, `1.5 MiB`."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {UNITS[unit]}" if unit else f"{size} bytes"


def list_entries(arguments: argparse.Namespace) -> int:
    store = local_store()
    contents = inventory(store)
    rows = list(_rows(contents, marks_if_any(contents, store)))
    if arguments.json:
        print(digest.text(rows, indent=1))
        return 0
    for row in rows:
        key, used = row["key"][:SHORT_KEY], time.strftime("%Y-%m-%d", time.gmtime(row["used"]))
        owners = ", ".join(filter(None, [row["in_use_by"], "" if row["is_here"] else "missing"]))
        line = f"{key}  {used}  {size_text(row['size']):>11}  {row['stage']:<16}  {owners}"
        SCREEN.line(line.rstrip())
    return 0


def _rows(contents: Inventory, marks: Marks) -> Iterator[dict[str, Any]]:
    """One per record, the last used first."""
    used = {entry.file for entry in entries_in_use(contents, marks.keys)}
    for entry in sorted(contents.entries, key=lambda e: (-contents.used_ns(e), e.file.name)):
        owner = marks.keys.get(entry.key) or ("search" if entry.file in used else "")
        yield {
            "key": entry.key,
            "stage": entry.stage if entry.digest else "damaged",
            "digest": entry.digest,
            "size": entry.size,
            "seconds": entry.seconds,
            "used": round(contents.used_ns(entry) / 1e9),
            "is_here": entry.digest in contents.blobs,
            "is_signed": entry.file.kind == "envelope",
            "in_use_by": owner,
        }


def usage(arguments: argparse.Namespace) -> int:
    store = local_store()
    contents = inventory(store)
    document = _usage(contents, marks_if_any(contents, store), store)
    if arguments.json:
        print(digest.text(document, indent=1))
        return 0
    for name, size in document["kinds"].items():
        SCREEN.line(f"{size_text(size):>12}  {name}")
    SCREEN.line(f"{size_text(document['total']):>12}  in all")
    SCREEN.line(f"{size_text(document['in_use']):>12}  artifacts in use by this workspace or a pin")
    for name, size in document["pins"].items():
        SCREEN.line(f"{size_text(size):>12}  artifacts of the pin {name}")
    return 0


def _usage(contents: Inventory, marks: Marks, store: LocalStore) -> dict[str, Any]:
    """Sizes in bytes; an artifact counts once."""
    kinds: dict[str, int] = {}
    for file in contents.files:
        kinds[file.kind] = kinds.get(file.kind, 0) + file.size
    pins = {name: _artifacts(contents, pinned(store.root, name)) for name in pin_names(store.root)}
    return {
        "kinds": dict(sorted(kinds.items())),
        "total": sum(kinds.values()),
        "in_use": _artifacts(contents, marks.keys),
        "pins": pins,
    }


def _artifacts(contents: Inventory, keys: Mapping[str, str]) -> int:
    digests = {entry.digest for entry in entries_in_use(contents, keys)}
    return sum(blob.size for name, blob in contents.blobs.items() if name in digests)


def verify(arguments: argparse.Namespace) -> int:
    from npumake.cache.verify import damages

    store = local_store()
    contents = inventory(store)
    SCREEN.begin("verifying")
    try:
        with listening(SCREEN.progress):
            problems = list(damages(store, contents))
    finally:
        SCREEN.end()
    files = sum(1 for _ in contents.files)
    if arguments.json:
        rows = [{"file": d.file.name, "kind": d.file.kind, "damage": d.what} for d in problems]
        print(digest.text({"files": files, "damages": rows}, indent=1))
    else:
        for damage in problems:
            SCREEN.line(f"damaged  {damage.file.name}: {damage.what}", "red")
        SCREEN.line(f"{files} files, {len(problems)} damaged")
    return CacheError.exit_code if problems else 0


def marks_if_any(contents: Inventory, store: LocalStore) -> Marks:
    """The artifacts in use; an unreadable project counts as using none, with a note."""
    builds = []
    for name, build in workspace_builds():
        if isinstance(build, PipelineError):
            SCREEN.line(f"note: {name} cannot be read: {build.what}", "yellow")
        else:
            builds.append(build)
    return workspace_marks(builds, contents, store)
