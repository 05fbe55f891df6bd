"""npumake doctor: what is installed, what each target needs, and the line that installs it

example:
  npumake doctor
  npumake doctor --target ethos-u65-256     # exit code 4 if something is missing for it
  npumake doctor --json

It changes nothing and reads no project.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from npumake import digest
from npumake.cli.screen import SCREEN
from npumake.errors import ProjectError, StageError, did_you_mean

GIB = 1 << 30


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", metavar="CHIP", action="append", help="may be given again")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.examination import examined
    from npumake.targets.reader import known_targets

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


def _lines(report: dict[str, Any]) -> Iterator[str]:
    version = f"{report['npumake'] or 'from sources'}, commit {report['commit'] or 'unknown'}"
    yield f"npumake   {version}, installed by {report['installed by']}"
    yield f"extras    {', '.join(report['extras']) or 'none'}"
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
