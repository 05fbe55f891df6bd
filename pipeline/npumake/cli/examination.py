"""The checks of `npumake doctor`: the machine, the packages, and what each target lacks."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from npumake.cli.version import commit, installed_extras
from npumake.compilers.adapters.adapter import ADAPTERS, versions
from npumake.compilers.required import installed_version, missing_compiler
from npumake.engine.parallel import threads
from npumake.errors import StageError
from npumake.extras import EXTRAS, install_line, installer
from npumake.make.memory import cache_directory
from npumake.targets.reader import known_targets, read_target

BASE = ("numpy", "onnx", "onnx-ir", "onnxruntime")
MEMORY = Path("/proc/meminfo")  # Linux's; elsewhere only the total is known


def examined(names: Iterable[str]) -> dict[str, Any]:
    """The machine, the packages, and what each target lacks."""
    return {
        "npumake": installed_version("npumake"),
        "commit": commit(),
        "extras": installed_extras(),
        "installed by": installer(),
        "python": platform.python_version(),
        "interpreter": sys.executable,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": threads(),
        "memory": memory(),
        "cache": _cache(),
        "packages": [_package(name) for name in (*BASE, *EXTRAS)],
        "interpreters": [_interpreter(name) for name in ADAPTERS],
        "commands": _commands(),
        "targets": [_target(name) for name in names],
    }


def memory() -> dict[str, int]:
    """Bytes: total, and available if the system reports it; empty if it reports nothing."""
    if MEMORY.is_file():
        words = (line.split() for line in MEMORY.read_text(encoding="ascii").splitlines())
        kib = {row[0].rstrip(":"): int(row[1]) for row in words if len(row) == 3}
        names = {"total": "MemTotal", "available": "MemAvailable"}
        return {name: 1024 * kib[key] for name, key in names.items() if key in kib}
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return {"total": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")}
    return {}


def _cache() -> dict[str, Any]:
    folder = cache_directory(Path.cwd())
    around = next(
        (candidate for candidate in (folder, *folder.parents) if candidate.is_dir()), folder
    )
    files = (Path(where) / name for where, _, names in os.walk(folder) for name in names)
    return {
        "folder": str(folder),
        "bytes": sum(file.lstat().st_size for file in files if file.exists()),
        "free": shutil.disk_usage(around).free,
        "writable": os.access(around, os.W_OK),
    }


def _package(name: str) -> dict[str, str]:
    installed = installed_version(name)
    return {"name": name, "version": installed, "install": "" if installed else install_line(name)}


def _interpreter(name: str) -> dict[str, Any]:
    adapter = ADAPTERS[name]
    return {
        "variable": adapter.variable,
        "interpreter": os.environ.get(adapter.variable, ""),
        "needs": list(adapter.distributions),
        "versions": _answered(name),
    }


def _answered(name: str) -> dict[str, str]:
    try:
        return versions(ADAPTERS[name])
    except StageError:  # not an interpreter: it does not answer
        return {}


def _commands() -> dict[str, str]:
    """By the vendors' commands, their paths; empty for one that is not on PATH."""
    tools = {t.tool.command for name in known_targets() if (t := read_target(name)).tool}
    return {command: shutil.which(command) or "" for command in sorted(tools)}


def _target(name: str) -> dict[str, str]:
    try:
        missing = missing_compiler(read_target(name).backend)
    except StageError as error:
        missing = error
    message, how = (missing.what, missing.hint) if missing else ("", "")
    return {"name": name, "missing": message, "install": how}
