"""npumake worker: build nodes on a cluster; a `dask worker` with npumake's checks

example:
  npumake worker tcp://10.0.0.1:8786
  npumake worker scheduler.json --nworkers 4 --memory-limit 8GiB
  eval "$(npumake worker)"        # for a launcher that calls `dask worker` itself

Options after the address are those of `dask worker`. Every process builds one node at a time. It
stores artifacts in the folder NPUMAKE_CACHE, by default cache/ here, and shares them through the
remote cache. A folder that client and workers share needs no remote. A build only uses workers with
its own versions of npumake, Python, NumPy and onnxruntime.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from npumake.errors import ProjectError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "address",
        nargs="?",
        metavar="ADDRESS",
        help="of the scheduler, or its scheduler file; without it the settings are printed",
    )
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, metavar="...", help="options of `dask worker`"
    )


def run(arguments: argparse.Namespace) -> int:
    from npumake.make.dask_client import is_scheduler_file, refuse_absent

    refuse_absent()
    if any(option.split("=")[0] == "--resources" for option in arguments.options):
        message = "a worker declares its versions by --resources"
        raise ProjectError(message, hint="leave it out: every process builds one node at a time")
    if arguments.address is not None and Path(arguments.address).is_dir():
        message = f"`{arguments.address}` is a folder, not the address of a scheduler"
        raise ProjectError(message, hint="tcp://HOST:PORT, or the scheduler file that it wrote")
    environment = _environment(arguments.options)
    if arguments.address is None:
        for name, value in environment.items():
            print(f"export {name}={shlex.quote(value)}")
        return 0
    if is_scheduler_file(arguments.address) and not Path(arguments.address).exists():
        # Dask waits for it without a word.
        print(f"waiting for scheduler file {arguments.address}", file=sys.stderr, flush=True)
    os.environ.update(environment)
    command = [sys.executable, "-m", "distributed.cli.dask_worker"]
    os.execv(sys.executable, [*command, *_options(arguments.address, arguments.options)])


def _options(address: str, options: Sequence[str]) -> list[str]:
    """The options of `dask worker`; a later one replaces a default."""
    from npumake.make.dask_client import PRELOAD, is_scheduler_file

    place = ["--scheduler-file", address] if is_scheduler_file(address) else [address]
    return [*place, "--nthreads", "1", "--no-dashboard", "--preload", PRELOAD, *options]


def _environment(options: Sequence[str]) -> dict[str, str]:
    """Settings of the processes: their resources, and that a stage may start processes itself.
    They announce their memory limit when they start."""
    from npumake.make.dask_client import SETTINGS
    from npumake.make.machine import offered, versions
    from npumake.make.memory import BuildMemory, cache_directory

    memory = BuildMemory(cache_directory(Path.cwd()))
    resources = offered(versions(memory))
    memory.save()
    settings = {
        f"DASK_{name.upper().replace('.', '__')}": value if isinstance(value, str) else repr(value)
        for name, value in {**SETTINGS, "distributed.worker.resources": resources}.items()
    }
    settings["OPENBLAS_NUM_THREADS"] = "1"
    spelled = [part for option in options for part in option.split("=", 1)]
    processes = dict(pairwise(spelled)).get("--nworkers", "1")
    if "NPUMAKE_THREADS" not in os.environ and processes.isdigit() and int(processes) > 1:
        settings["NPUMAKE_THREADS"] = str(max(1, (os.cpu_count() or 1) // int(processes)))
    return settings
