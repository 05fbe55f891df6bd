"""Runs OpenVINO's IR from a ZIP: the child process of npumake.runtime.isolated for this runtime.

    run_openvino.py DEVICE FOLDER

FOLDER holds request.json, model.zip and fed_<n>.npz; the script adds made_<n>.npz. No pickles.
"""

import ctypes
import json
import resource
import signal
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino

DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl, on Linux
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # no bfloat16 on processors that have it


def limit(request: dict[str, Any]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    requested = request["memory"]
    low = requested if hard_limit == resource.RLIM_INFINITY else min(requested, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (low, hard_limit))
    signal.alarm(request["seconds"])


def main(device: str, folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    limit(request)
    with zipfile.ZipFile(folder / "model.zip") as archive:
        for name in ("model.xml", "model.bin"):
            (folder / name).write_bytes(archive.read(name))
    model = openvino.Core().compile_model(str(folder / "model.xml"), device, EXACT)
    names = {name: at for at, port in enumerate(model.inputs) for name in port.names}
    (folder / "opened").touch()
    for number in range(request["runs"]):
        with np.load(folder / f"fed_{number}.npz", allow_pickle=False) as arrays:
            feed = {
                names[name]: arrays[str(at)]
                for at, name in enumerate(request["inputs"])
                if name in names
            }
        results = model(feed)
        outputs = {name: results[port] for port in model.outputs for name in port.names}
        (folder / f"made_{number}.json").write_text(json.dumps(list(outputs)), encoding="utf-8")
        part = folder / f"made_{number}.part.npz"
        np.savez(part, **{str(at): array for at, array in enumerate(outputs.values())})
        part.rename(folder / f"made_{number}.npz")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
