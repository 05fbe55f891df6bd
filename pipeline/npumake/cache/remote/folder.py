"""file:// : a folder, perhaps on a network file system, in the layout of the protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from npumake.cache.publish import scratch, settle
from npumake.cache.remote.address import Address
from npumake.cache.remote.transport import CHUNK_BYTES, Body, Deadline, Readable, RemoteError
from npumake.errors import CacheError
from npumake.lifetime.temporaries import sweep


class FolderTransport:
    """System calls on a folder may hang, as on a dead NFS server: the deadline only holds between
    them."""

    def __init__(self, address: Address) -> None:
        self._root = Path(address.path)
        self._is_swept = False

    def get(self, name: str, deadline: Deadline, start: int = 0) -> Body | None:
        try:
            file = (self._root / name).open("rb")
        except FileNotFoundError:
            self._refuse_absence()
            return None
        except OSError as error:
            raise _failed(error) from None
        file.seek(start)
        size = os.fstat(file.fileno()).st_size
        return Body(start, size, _chunks(file, deadline), file.close)

    def size(self, name: str, deadline: Deadline) -> int | None:
        try:
            return os.stat(self._root / name).st_size
        except FileNotFoundError:
            self._refuse_absence()
            return None
        except OSError as error:
            raise _failed(error) from None

    def _refuse_absence(self) -> None:
        """Raises RemoteError if the folder itself is absent: a share that is not mounted."""
        if not self._root.is_dir():
            raise RemoteError("no such folder", lasting=True)

    def put(self, name: str, file: Readable, size: int, deadline: Deadline) -> None:
        self._refuse_absence()  # the folder is never created here
        if not self._is_swept:
            self._is_swept = True
            sweep(self._root / "scratch")
        path = self._root / name
        try:
            with scratch(path, self._root / "scratch") as temporary:
                with temporary.open("xb") as copy:
                    for chunk in _chunks(file, deadline):
                        copy.write(chunk)
                settle(temporary, path)
        except CacheError as error:
            raise RemoteError(error.what, lasting=True) from None
        except OSError as error:
            raise _failed(error) from None


def _chunks(file: Readable, deadline: Deadline) -> Iterator[bytes]:
    while True:
        deadline.left(0)
        try:
            chunk = file.read(CHUNK_BYTES)
        except OSError as error:
            raise _failed(error) from None
        if not chunk:
            return
        yield chunk


def _failed(error: OSError) -> RemoteError:
    return RemoteError(os.strerror(error.errno or 0).lower(), lasting=True)
