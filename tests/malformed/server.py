"""Runs commands of npumake, each in a fork with limits; see runner.py.

A line of JSON in is a request, a line out the answer. All that a command would load first is
loaded before the fork, but for what starts a thread: such libraries start theirs in the child.
Called with `libraries` it loads those alone, so that a request may bring another npumake.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import traceback
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

ADAPTERS = "npumake.compilers.adapters.scripts"  # other interpreters run them
LIBRARIES = (
    *("doit.doit_cmd", "jsonschema", "numpy", "onnx.checker", "onnx.shape_inference", "onnx_ir"),
    *("onnxruntime", "PIL.Image", "rich.console", "rich.table", "safetensors.numpy", "yaml"),
)


def load_libraries() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)


def load_ours() -> None:
    import npumake

    for module in pkgutil.walk_packages(npumake.__path__, "npumake."):
        if not module.name.startswith(ADAPTERS):
            importlib.import_module(module.name)
    for late in ("jsonschema", "npumake.bundle.secure"):
        dir(sys.modules[late])  # npumake.late: executed when something is looked up
    assert len(os.listdir("/proc/self/task")) == 1, "a fork has none of its parent's threads"


def answered(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as told:
        child = os.fork()
        if child == 0:
            os._exit(_run(request, told.fileno()))
        _, status = os.waitpid(child, 0)
        told.seek(0)
        return {"code": os.waitstatus_to_exitcode(status), "output": told.read()}


def _run(request: dict[str, Any], told: int) -> int:
    os.dup2(told, 1)
    os.dup2(told, 2)
    os.chdir(request["folder"])
    os.environ.update(request["variables"])
    sys.path[:0] = request["path"]
    # Seconds of a processor, however many others want it; and an end to what waits for ever.
    signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    signal.alarm(30 * request["seconds"])
    with open("/proc/self/statm") as memory:
        idle = int(memory.read().split()[0]) * resource.getpagesize()
    most = idle + request["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        code = importlib.import_module("npumake.cli.main").main(request["command"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001  # the interpreter's own last resort, in a fork
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    load_libraries() if sys.argv[1:] == ["libraries"] else load_ours()
    answers = os.dup(1)
    with os.fdopen(answers, "w") as stream:
        for line in sys.stdin:
            stream.write(json.dumps(answered(json.loads(line))) + "\n")
            stream.flush()
