"""A hand-over as one file: a ZIP of the directory for a vendor's tool.

Nothing is compressed, and every date is 1980-01-01. Files are created or read on demand, so samples
may exceed the memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Self

from npumake.errors import CacheError

SCRIPT = "convert.sh"
EXECUTABLE = 0o100755 << 16


@dataclass(frozen=True)
class Handover:
    """`files()` yields names and contents."""

    files: Callable[[], Iterator[tuple[str, bytes]]]

    suffix: ClassVar[str] = ".zip"

    def save(self, path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, data in self.files():
                entry = zipfile.ZipInfo(name)
                entry.create_system = 3
                entry.external_attr = EXECUTABLE if name == SCRIPT else 0o100644 << 16
                archive.writestr(entry, data)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises CacheError for a file that `save` did not write."""
        try:
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
        except zipfile.BadZipFile as error:
            raise CacheError(f"not a hand-over: {error}", str(path)) from error
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or _leads_elsewhere(entry.filename):
                raise CacheError(f"not part of a hand-over: `{entry.filename}`", str(path))

        def files() -> Iterator[tuple[str, bytes]]:
            with zipfile.ZipFile(path) as archive:
                for entry in entries:
                    yield entry.filename, archive.read(entry)

        return cls(files)

    def lay_out(self, folder: Path) -> tuple[str, ...]:
        """Writes the files into `folder` and returns their names. Raises CacheError on a full
        disk."""
        names = []
        for name, data in self.files():
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
            except OSError as error:
                hint = "TMPDIR names another folder for temporary files"
                message = f"no room for the hand-over: {error.strerror}"
                raise CacheError(message, hint=hint) from error
            names.append(name)
        return tuple(names)


def _leads_elsewhere(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or name != path.as_posix() or "\\" in name
