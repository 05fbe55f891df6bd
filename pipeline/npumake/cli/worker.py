"""npumake worker: make nodes for the builds of a cluster; a `dask worker` with npumake's checks

examples:
  npumake worker tcp://10.0.0.1:8786
  npumake worker scheduler.json --nworkers 4 --memory-limit 8GiB

Options behind the address are those of `dask worker`. Every process makes one node at a time. It
keeps what it makes in the folder NPUMAKE_CACHE, by default cache/ here, and shares it through the
remote cache; a folder that client and workers have in common needs no remote. A build uses only
workers whose npumake, Python, NumPy and onnxruntime are its own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from npumake.errors import ProjectError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "address", metavar="ADDRESS", help="of the scheduler, or its scheduler file"
    )
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, metavar="...", help="options of `dask worker`"
    )


def run(arguments: argparse.Namespace) -> int:
    from npumake.make.cluster import refuse_absent
    from npumake.make.machine import resource, versions
    from npumake.make.memory import BuildMemory, cache_directory

    refuse_absent()
    if any(option.split("=")[0] == "--resources" for option in arguments.options):
        message = "--resources is how a worker names its versions"
        raise ProjectError(message, hint="leave it out: every process makes one node at a time")
    memory = BuildMemory(cache_directory(Path.cwd()))
    offered = resource(versions(memory))
    memory.save()
    os.environ.update(_environment(arguments.options))
    command = [sys.executable, "-m", "distributed.cli.dask_worker"]
    os.execv(sys.executable, [*command, *_options(arguments.address, arguments.options, offered)])


def _options(address: str, options: Sequence[str], offered: str) -> list[str]:
    """The options of `dask worker`; a later one replaces a default."""
    from npumake.make.cluster import is_scheduler_file

    place = ["--scheduler-file", address] if is_scheduler_file(address) else [address]
    return [*place, "--nthreads", "1", "--no-dashboard", *options, "--resources", f"{offered}=1"]


def _environment(options: Sequence[str]) -> dict[str, str]:
    """Of the processes: a stage may start some itself, and all share the cores."""
    spelled = [part for option in options for part in option.split("=", 1)]
    follows = dict(pairwise(spelled))
    processes = follows.get("--nworkers", "1")
    cores = os.cpu_count() or 1
    threads = max(1, cores // int(processes)) if processes.isdigit() and int(processes) else 1
    return {
        "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
        "NPUMAKE_THREADS": os.environ.get("NPUMAKE_THREADS", str(threads)),
    }
