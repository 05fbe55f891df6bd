"""Whether many files and folders are unchanged, decided by one stat of each.

The status of paths is a digest over the mode and signature (npumake.cache.signature) of each, links
followed. A folder's signature shows that an entry was added, removed, renamed or replaced: its
listing need not be read again. Imports little, since a build with nothing to do rests on it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable


def status_of(paths: Iterable[str], is_settled: Callable[[int], bool] | None = None) -> str | None:
    """The status of existing files and folders; None if one is absent or unreachable.

    `is_settled` judges each ctime in nanoseconds: None also if one is not.
    """
    stat = os.stat
    values: list[int] = []
    try:
        for path in paths:
            entry = stat(path)
            changed = entry.st_ctime_ns
            if is_settled is not None and not is_settled(changed):
                return None
            values += (entry.st_mode, entry.st_size, entry.st_mtime_ns, changed, entry.st_ino)
    except (OSError, ValueError):  # ValueError: a name that the locale cannot encode
        return None
    return hashlib.sha256(repr(values).encode()).hexdigest()
