"""npumake doctor: what is installed, what each target needs, and the line that installs it

example:
  npumake doctor
  npumake doctor --target ethos-u65-256     # exit code 4 if something is missing for it
  npumake doctor --json

It changes nothing and reads no project.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from npumake import digest
from npumake.cli.screen import SCREEN
from npumake.compilers.adapters.adapter import ADAPTERS, versions
from npumake.compilers.required import installed_version, missing_compiler
from npumake.engine.parallel import threads
from npumake.errors import ProjectError, StageError, did_you_mean
from npumake.extras import EXTRAS, install_line, installer
from npumake.make.memory import cache_directory
from npumake.targets.reader import known_targets, read_target

BASE = ("numpy", "onnx", "onnx-ir", "onnxruntime")
GIB = 1 << 30
MEMORY = Path("/proc/meminfo")  # Linux's; elsewhere only the total is known


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", metavar="CHIP", action="append", help="may be given again")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(arguments: argparse.Namespace) -> int:
    chips = known_targets()
    for name in arguments.target or ():
        if name not in chips:
            raise ProjectError(f"unknown target `{name}`", "--target", did_you_mean(name, chips))
    report = examined(arguments.target or chips)
    if arguments.json:
        print(digest.text(report, indent=1))
    else:
        for line in _lines(report):
            SCREEN.line(line)
    missing = [row for row in report["targets"] if row["missing"]]
    if arguments.target and missing:
        raise StageError(missing[0]["missing"], missing[0]["name"], missing[0]["install"])
    return 0


def examined(names: Iterable[str]) -> dict[str, Any]:
    """The machine, the packages, and what each target lacks."""
    return {
        "npumake": installed_version("npumake"),
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
    """Bytes: total, and available where the system tells it; empty where it tells nothing."""
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
    around = next((entry for entry in (folder, *folder.parents) if entry.is_dir()), folder)
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
    except StageError:  # no interpreter: it does not answer
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


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield f"npumake   {report['npumake'] or 'from sources'}, installed by {report['installed by']}"
    yield f"python    {report['python']}, {report['interpreter']}, {report['platform']}"
    sizes = ", ".join(f"{n / GIB:.1f} GiB {name}" for name, n in report["memory"].items())
    yield f"memory    {sizes or 'unknown'}"
    yield f"threads   {report['threads']} of {report['processors']} processors (NPUMAKE_THREADS)"
    cache = report["cache"]
    state = "" if cache["writable"] else "; NOT WRITABLE"
    used, free = cache["bytes"] / GIB, cache["free"] / GIB
    yield f"cache     {cache['folder']}: {used:.2f} GiB, {free:.1f} GiB free{state} (NPUMAKE_CACHE)"
    yield ""
    for package in report["packages"]:
        yield f"{package['name']:<28} {package['version'] or 'missing: ' + package['install']}"
    for row in report["interpreters"]:
        versions = ", ".join(f"{n} {v}" for n, v in row["versions"].items())
        named = "names no interpreter with it" if row["interpreter"] else "is not set"
        needs = " ".join(row["needs"])
        yield f"{needs:<28} {versions or 'missing: ' + row['variable'] + ' ' + named}"
    for command, path in report["commands"].items():
        yield f"{command:<28} {path or 'not on PATH; `npumake handover` writes what it needs'}"
    yield ""
    yield from _target_lines(report["targets"])


def _target_lines(targets: list[dict[str, str]]) -> Iterator[str]:
    ready = [row["name"] for row in targets if not row["missing"]]
    yield f"ready     {', '.join(ready) or 'no target'}"
    by_cause: dict[tuple[str, str], list[str]] = {}
    for row in targets:
        if row["missing"]:
            by_cause.setdefault((row["missing"], row["install"]), []).append(row["name"])
    for (message, how), names in by_cause.items():
        yield f"missing   {', '.join(names)}: {message}"
        yield f"          {how}"
