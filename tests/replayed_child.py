"""A child of npumake.runtime.isolated whose outputs are computed once for each content.

    python -IS replayed_child.py RECORDS COMMAND... FOLDER

A build of digits runs two compiled files, each in a new interpreter: more than half of its time.
Equal files with equal feeds give equal outputs, so of runs that ended well the outputs are kept in
RECORDS. All else, errors too, is left to COMMAND. Needs the standard library alone: it starts in
milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

REQUEST = "request.json"
PATTERNS = ("opened", "made_*")  # what a child leaves in its folder


def main(records: Path, command: list[str], folder: Path) -> int:
    request = json.loads((folder / REQUEST).read_text())
    record = records / _content(folder, {**request, "parent": 0})
    if record.is_dir():
        shutil.copytree(record, folder, dirs_exist_ok=True)
        return 0
    (folder / REQUEST).write_text(json.dumps({**request, "parent": os.getpid()}))
    status = subprocess.run([*command, str(folder)]).returncode
    if status == 0:
        _keep(folder, record)
    elif status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _content(folder: Path, request: dict[str, object]) -> str:
    sums = hashlib.sha256(json.dumps(request).encode())
    for file in sorted(folder.iterdir()):
        if file.name not in (REQUEST, "said"):
            sums.update(f"{file.name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return sums.hexdigest()


def _keep(folder: Path, record: Path) -> None:
    partial = record.with_name(f"{record.name}.{os.getpid()}")
    partial.mkdir()
    for pattern in PATTERNS:
        for file in folder.glob(pattern):
            shutil.copyfile(file, partial / file.name)
    try:
        partial.rename(record)
    except OSError:  # another process was first
        shutil.rmtree(partial)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:-1], Path(sys.argv[-1])))
