"""A child of npumake.runtime.isolated whose outputs are computed once for each content.

    python -IS replayed_child.py RECORDS COMMAND... FOLDER

A build of digits runs two compiled files, each in a new interpreter: more than half of its time.
Equal files with equal feeds give equal outputs, so of runs that ended well the outputs are kept in
RECORDS. All else, errors too, is left to COMMAND. Nothing is imported that a replay does not need:
it ends in milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import sys

REQUEST, LOG = "request.json", "said"
OUTPUTS = ("opened", "made_")  # how the names begin of what a child leaves in its folder
PARENT = b'"parent": '


def main(records: str, command: list[str], folder: str) -> int:
    before, after = _request(folder)
    record = f"{records}/{_content(folder, before + after)}"
    if os.path.isdir(record):
        _copy(os.listdir(record), record, folder)
        return 0
    _write(f"{folder}/{REQUEST}", before + PARENT + str(os.getpid()).encode() + after)
    status = os.spawnv(os.P_WAIT, command[0], [*command, folder])
    if status == 0:
        _keep(folder, record)
    elif status < 0:
        import signal

        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _request(folder: str) -> tuple[bytes, bytes]:
    """What stands before and behind the number of the parent."""
    before, found, after = _read(f"{folder}/{REQUEST}").partition(PARENT)
    assert found
    return before, after.lstrip(b"0123456789")


def _content(folder: str, request: bytes) -> str:
    sums = hashlib.sha256(request)
    for name in sorted(os.listdir(folder)):
        if name not in (REQUEST, LOG):
            data = _read(f"{folder}/{name}")
            sums.update(f"{name}\0{len(data)}\0".encode() + data)
    return sums.hexdigest()


def _keep(folder: str, record: str) -> None:
    partial = f"{record}.{os.getpid()}"
    os.mkdir(partial)
    names = [name for name in os.listdir(folder) if name.startswith(OUTPUTS)]
    _copy(names, folder, partial)
    try:
        os.rename(partial, record)
    except OSError:  # another process was first
        import shutil

        shutil.rmtree(partial)


def _copy(names: list[str], source: str, folder: str) -> None:
    for name in names:
        _write(f"{folder}/{name}", _read(f"{source}/{name}"))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:-1], sys.argv[-1]))
