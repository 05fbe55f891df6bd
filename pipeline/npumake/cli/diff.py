"""npumake diff: the changes between two artifacts or two builds, for code review

A and B are files, `out/` folders of two builds, or names of nodes. It compares nodes, scales,
weights, cosines, scores, sizes and estimated latency by name, and lists only differences.

example:
  npumake diff before/out projects/digits/out
  npumake diff digits:rdk-x5/quantized digits@kl:rdk-x5/quantized
  npumake diff old.rdk-x5.hybrid new.rdk-x5.hybrid --json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cli.projects import place, project_directories
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.cli.show_artifact import artifact_of
from npumake.cli.terminal import printable, shortened

if TYPE_CHECKING:
    from rich.table import Table

    from npumake.report.diff import FactChange, FileDifference

MAX_LINES = 20  # lines of a section; --json has all
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="a file, a folder, a node, or PROJECT[:TARGET]")
    parser.add_argument("after", metavar="B", help="the same of the other build")
    parser.add_argument("--json", action="store_true", help="for machines: everything")
    wide_argument(parser)
    format_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.report.diff import differences

    files = differences(_path(arguments.before), _path(arguments.after))
    if arguments.json:
        print(digest.text([file.document() for file in files], indent=1))
        return 0
    if SCREEN.is_export:
        SCREEN.table(_table(files))
        return 0
    for difference in files:
        print(*difference_lines(difference), sep="\n")
    if not files:
        print("no difference")
    return 0


def _table(files: Sequence[FileDifference]) -> Table:
    """Every change; a file that only one side has is one as a whole."""
    from npumake.cli.columns import Column, Line, draw_table

    heads = ("File", "Section", "Change", "Name", "Before", "After")
    lines = []
    for file in files:
        if file.only:
            kind = "added" if file.only == "after" else "removed"
            lines.append(Line((file.file, "", kind, "", "", "")))
        for section, changes in file.sections.items():
            for change in changes:
                values = ("" if v is None else _text(v) for v in (change.before, change.after))
                lines.append(Line((file.file, section, change.kind, change.name, *values)))
    return draw_table([Column(head, "name") for head in heads], lines, None)


def _path(name: str) -> Path:
    """A file, a folder, or the artifact of a name; of a project its out/."""
    path = Path(name)
    if path.is_file() or (path.is_dir() and not (path / "project.yaml").is_file()):
        return path
    directory, called = place(name)
    by_name = {folder.name: folder for folder in project_directories(directory)}
    return by_name[called] / "out" if called in by_name else artifact_of(name)[0]


def difference_lines(difference: FileDifference) -> Iterator[str]:
    """The changes of one file, a section at a time."""
    if difference.only:
        yield f"{SIGNS['added' if difference.only == 'after' else 'removed']} {difference.file}"
        return
    yield f"~ {printable(difference.file)}"
    for name, changes in difference.sections.items():
        yield f"  {name}{_counted(changes)}"
        texts = [printable(_change_text(change, name)) for change in changes[:MAX_LINES]]
        room = SCREEN.room(len("    ~   ") + max(map(len, texts)))
        names = [shortened(printable(change.name), room) for change in changes[:MAX_LINES]]
        width = max(map(len, names))
        for change, short, text in zip(changes, names, texts, strict=False):
            yield f"    {SIGNS[change.kind]} {short:<{width}}  {text}"
        if len(changes) > MAX_LINES:
            yield f"      and {len(changes) - MAX_LINES} more"


def _counted(changes: Sequence[FactChange]) -> str:
    kinds = [change.kind for change in changes]
    counts = [f"{kinds.count(kind)} {kind}" for kind in SIGNS if kind in kinds]
    return f": {', '.join(counts)}" if len(changes) > 1 else ""


def _change_text(change: FactChange, section: str) -> str:
    from npumake.report.diff import RATIOS

    if change.kind != "changed":
        return _text(change.after if change.before is None else change.before)
    moved = ""
    if section in RATIOS and change.drift is not None:
        moved = f"  ({change.drift:+.2%})"
    elif change.difference is not None:
        moved = f"  ({change.difference:+.6g})"
    return f"{_text(change.before)} → {_text(change.after)}{moved}"


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
