"""npumake list: the status of every node, with reasons

  current     its artifact is up to date
  cached      a build would copy it from the store
  would run   a build would run its stage

example:
  npumake list digits             # digits@p999 for a variant of it
  npumake list --json | jq '.[] | select(.status != "current")'
  npumake list --scores --format markdown     # cosine and figures of each build
  npumake list --targets          # the chips
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.cli.selection import chosen
from npumake.cli.terminal import shortened

if TYPE_CHECKING:
    from rich.table import Table


REASON = 24  # characters that a terminal keeps for the reason, and spaces
STYLES = {"current": "green", "cached": "cyan", "would run": "yellow"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="or its folder; all when none is named"
    )
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)
    format_argument(parser)
    parser.add_argument("--scores", action="store_true", help="figures of each build instead")
    parser.add_argument("--targets", action="store_true", help="list the chips instead")


def run(arguments: argparse.Namespace) -> int:
    if arguments.targets:
        return _list_targets(arguments.json)
    if arguments.scores:
        return _list_scores(arguments)
    rows = list(_rows(arguments.projects))
    if arguments.json:
        print(digest.text(rows, indent=1))
    elif SCREEN.is_export:
        SCREEN.table(_rows_table(rows))
    else:
        _print_rows(rows)
    return 0


def _list_scores(arguments: argparse.Namespace) -> int:
    from npumake.cli.scores import scores, scores_table

    rows = [row for build, _, nodes in chosen(arguments.projects) for row in scores(build, nodes)]
    if arguments.json:
        print(digest.text(rows, indent=1))
    else:
        SCREEN.table(scores_table(rows, SCREEN.width))
    return 0


def _rows(names: list[str]) -> Iterator[dict[str, Any]]:
    """Raises ProjectError."""
    for build, _, nodes in chosen(names):
        states = build.states()
        for node in nodes:
            state = states[node.name]
            yield {
                "node": node.name,
                "status": state.status,
                "reasons": list(state.reasons),
                "artifact": node.path,
                "digest": state.digest,
            }
        build.memory.save()


def _print_rows(rows: list[dict[str, Any]]) -> None:
    room = SCREEN.room(len("would run") + REASON)
    names = [shortened(row["node"], room) for row in rows]
    width = max(map(len, names), default=0)
    for row, name in zip(rows, names, strict=True):
        reasons = row["reasons"]
        status = row["status"]
        suffix = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        reason = f"{reasons[0]}{suffix}" if reasons else ""
        SCREEN.line(f"{status:<9}  {name:<{width}}  {reason}".rstrip(), STYLES[status])


def _rows_table(rows: list[dict[str, Any]]) -> Table:
    from npumake.cli.columns import Column, Line, draw_table

    heads = ("Status", "Node", "Reasons", "Artifact")
    lines = [
        Line((row["status"], row["node"], "; ".join(row["reasons"]), row["artifact"]))
        for row in rows
    ]
    return draw_table([Column(head, "name") for head in heads], lines, None)


def _list_targets(as_json: bool) -> int:
    from npumake.targets.reader import known_targets, read_target

    targets = [read_target(name) for name in known_targets()]
    if as_json:
        print(digest.text([{"name": t.name, "vendor": t.vendor} for t in targets], indent=1))
        return 0
    for target in targets:
        grids = target.activations
        kind = "symmetric" if grids.symmetric else "asymmetric"
        also = ", or asymmetric" if grids.symmetric and grids.asymmetric else ""
        print(f"{target.name:<12} {target.vendor:<12} {kind} {grids.dtype}{also}")
    return 0
