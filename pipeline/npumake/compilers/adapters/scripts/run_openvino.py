"""Runs OpenVINO's IR from a ZIP: the child process of npumake.runtime.isolated for this runtime.

    run_openvino.py DEVICE FOLDER

FOLDER holds request.json, model.zip and fed_<n>.npz; the script adds made_<n>.npz. No pickles.

The outputs are those of the file as it is deployed: OpenVINO rewrites it into integers of its own,
and on processors without VNNI their products saturate at 16 bits (oneDNN, "Nuances of int8
computations"). Inner tensors are those of the file as it is written: without that rewriting.
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
AS_WRITTEN = {**EXACT, "LP_TRANSFORMS_MODE": "NO"}

Arrays = dict[str, np.ndarray]


def limit(request: dict[str, Any]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    requested = request["memory"]
    low = requested if hard_limit == resource.RLIM_INFINITY else min(requested, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (low, hard_limit))
    signal.alarm(request["seconds"])


def tapped(core: Any, file: str, taps: list[str], device: str) -> Any:
    """The model with these of its tensors as outputs too."""
    model = core.read_model(file)
    ports = {
        name: port
        for operation in model.get_ordered_ops()
        for port in operation.outputs()
        for name in port.get_names()
    }
    outputs = {name for port in model.outputs for name in port.get_names()}
    additional = [ports[name] for name in taps if name in ports and name not in outputs]
    if additional:
        model.add_outputs(additional)
    return core.compile_model(model, device, AS_WRITTEN)


def run(model: Any, feed: Arrays) -> Arrays:
    names = {name: at for at, port in enumerate(model.inputs) for name in port.names}
    results = model({names[name]: array for name, array in feed.items() if name in names})
    return {name: results[port] for port in model.outputs for name in port.names}


def main(device: str, folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    limit(request)
    with zipfile.ZipFile(folder / "model.zip") as archive:
        for name in ("model.xml", "model.bin"):
            (folder / name).write_bytes(archive.read(name))
    core, file = openvino.Core(), str(folder / "model.xml")
    model = core.compile_model(file, device, EXACT)
    inside = tapped(core, file, request["taps"], device) if request["every"] else None
    (folder / "opened").touch()
    for number in range(request["runs"]):
        with np.load(folder / f"fed_{number}.npz", allow_pickle=False) as arrays:
            feed = {name: arrays[str(at)] for at, name in enumerate(request["inputs"])}
        outputs = run(model, feed)
        inner = {} if inside is None else run(inside, feed)
        names = {"outputs": list(outputs), "inner": list(inner)}
        (folder / f"made_{number}.json").write_text(json.dumps(names), encoding="utf-8")
        part = folder / f"made_{number}.part.npz"
        values = [*outputs.values(), *inner.values()]
        np.savez(part, **{str(at): array for at, array in enumerate(values)})  # type: ignore[arg-type]  # of its own keyword
        part.rename(folder / f"made_{number}.npz")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
