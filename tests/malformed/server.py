"""Runs commands of npumake, each in a fork with limits; see runner.py.

A line of JSON in is a request, a line out the answer. Nothing here starts a thread before the
fork: the libraries make theirs in the child.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pipeline.cli.main
import pipeline.make.maker  # what a build imports when there is something to do


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
    signal.alarm(request["seconds"])
    with open("/proc/self/statm") as memory:
        idle = int(memory.read().split()[0]) * resource.getpagesize()
    most = idle + request["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        code = pipeline.cli.main.main(request["command"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001  # the interpreter's own last resort, in a fork
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    answers = os.dup(1)
    with os.fdopen(answers, "w") as stream:
        for line in sys.stdin:
            stream.write(json.dumps(answered(json.loads(line))) + "\n")
            stream.flush()
