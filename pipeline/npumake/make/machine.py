"""Machine: the versions that a client and its workers must share, for the same bytes."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from npumake import digest
from npumake.make.memory import BuildMemory

RESOURCE_PREFIX = "npumake-"
# The memory limit of a worker in bytes, for the node that it builds and for the part beside it.
MEMORY, PART_MEMORY = f"{RESOURCE_PREFIX}memory", f"{RESOURCE_PREFIX}memory-of-part"
UNKNOWN = "none"


@cache
def _versions() -> Mapping[str, str]:
    return {
        "Python": platform.python_version(),
        **{name: _version(name) for name in ("npumake", "numpy", "onnxruntime")},
    }


def versions(memory: BuildMemory) -> dict[str, str]:
    """By name; `code` is the digest of npumake's own sources."""
    return {**_versions(), "code": memory.code.package_digest[:12]}


def resource(of: Mapping[str, str]) -> str:
    """The resource of Dask that workers with these versions offer, one each: so a worker builds one
    node at a time, and a worker with other versions builds none."""
    return RESOURCE_PREFIX + digest.of_document(dict(of))[:12]


def part_resource(of: Mapping[str, str]) -> str:
    """The resource for what a stage distributes, one each: a worker that waits with a node for
    others takes a part meanwhile, but no second node."""
    return f"{resource(of)}-part"


def offered(of: Mapping[str, str]) -> dict[str, int]:
    """The resources of a worker with these versions; its memory is announced by the worker itself
    (npumake.make.dask_worker)."""
    return {resource(of): 1, part_resource(of): 1}


def difference(worker: Mapping[str, str], client: Mapping[str, str]) -> str:
    """`numpy 2.1.0 (here 2.2.0)` for each version that differs; empty if none does.

    >>> difference({"numpy": "2.1.0", "Python": "3.12.1"}, {"numpy": "2.2.0", "Python": "3.12.1"})
    'numpy 2.1.0 (here 2.2.0)'
    """
    names = [name for name in client if worker.get(name) != client[name]]
    return ", ".join(f"{name} {worker.get(name, UNKNOWN)} (here {client[name]})" for name in names)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder of sources
        return UNKNOWN
