"""npumake graph: draw the build: every node, its inputs, its state and the reason

A node hangs from the last of its inputs; `+` precedes its other inputs. A node without a reason is
built again because its inputs are.

example:
  npumake graph digits
  npumake graph digits@p999            # a variant
  npumake graph --svg build.svg
  npumake graph --json | jq '.[] | select(.status != "current") | .node'
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cache.publish import replacing
from npumake.cli.list_nodes import STYLES
from npumake.cli.screen import SCREEN, wide_argument
from npumake.cli.selection import chosen
from npumake.cli.terminal import printable, shortened
from npumake.make.build import Build, NodeState
from npumake.make.node import Node

if TYPE_CHECKING:
    from npumake.report.build_graph import BuildNode, TreeRow

MIN_REASON_CHARACTERS = 20  # characters of a wrapped line, however deep its node hangs
STATE_WIDTH = len("would run")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="or its folder; all when none is named"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw it into this file")
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.report.build_graph import svg

    builds = [_with_states(build, nodes) for build, _, nodes in chosen(arguments.projects)]
    if arguments.svg:
        graphs = {build.plan.project: _nodes(build, states) for build, states in builds}
        with replacing(arguments.svg) as temporary:
            temporary.write_text(svg(graphs), encoding="utf-8")
    if arguments.json:
        rows = [_row(build, build.plan.node(n), s) for build, all in builds for n, s in all.items()]
        print(digest.text(rows, indent=1))
    elif not arguments.svg:
        for build, states in builds:
            _print(build, states)
    return 0


def _with_states(build: Build, nodes: Sequence[Node]) -> tuple[Build, dict[str, NodeState]]:
    """The states of the nodes, and of those that they need of others."""
    from npumake.make.node import needed_by

    states = build.states()
    build.memory.save()
    inputs = {node.name: _inputs(node) for node in build.plan.nodes}
    needed = needed_by([node.name for node in nodes], inputs)
    return build, {name: state for name, state in states.items() if name in needed}


def _inputs(node: Node) -> tuple[str, ...]:
    return (*node.inputs.values(), *((node.twin,) if node.twin else ()))


def _nodes(build: Build, states: Mapping[str, NodeState]) -> list[BuildNode]:
    from npumake.report.build_graph import BuildNode

    return [
        BuildNode(
            name,
            state.status,
            state.status if state.follows or not state.reasons else state.reasons[0],
            state.reasons,
            tuple(build.plan.node(name).inputs.values()),
        )
        for name, state in states.items()
    ]


def _row(build: Build, node: Node, state: NodeState) -> dict[str, Any]:
    return {
        "node": node.name,
        "stage": node.stage,
        "variant": node.variant,
        "target": node.target,
        "status": state.status,
        "reasons": list(state.reasons),
        "follows": state.follows,
        "inputs": dict(node.inputs),
        "twin": node.twin,
        "artifact": node.path,
        "digest": state.digest,
    }


def _print(build: Build, states: Mapping[str, NodeState]) -> None:
    from npumake.report.build_graph import tree

    counts = {status: 0 for status in STYLES}
    for state in states.values():
        counts[state.status] += 1
    summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    SCREEN.line(f"{build.plan.project}: {summary}")
    for row in tree(_nodes(build, states)):
        state = states[row.node.name]
        SCREEN.line(_head(row), STYLES[state.status])
        for line in () if state.follows else _reasons(row, state):
            SCREEN.line(line)


def _head(row: TreeRow) -> str:
    """State, name and other inputs, in the width of the terminal."""
    name = f"{row.indent}{printable(row.node.short)}"
    used_columns = STATE_WIDTH + 2
    room = None if SCREEN.width is None else SCREEN.width - used_columns
    start = f"{row.node.status:<{STATE_WIDTH}}  {shortened(name, room)}"
    others = [printable(other.partition(":")[2]) for other in row.others]
    line = f"{start}  + {', '.join(others)}" if others else start
    if SCREEN.width is None or len(line) <= SCREEN.width:
        return line
    left = SCREEN.width - len(start)
    count = f"  + {len(others)} more"
    return f"{start}{count}" if len(count) <= left else start


def _reasons(row: TreeRow, state: NodeState) -> list[str]:
    """The reasons below the node, folded to the width of the terminal."""
    indent = f"{'':{STATE_WIDTH + 2}}{row.below}  "
    lines: list[str] = []
    for reason in map(printable, state.reasons):
        width = (
            None if SCREEN.width is None else max(SCREEN.width - len(indent), MIN_REASON_CHARACTERS)
        )
        folded = [reason] if width is None else textwrap.wrap(reason, width)
        lines += [f"{indent}{line}" for line in folded]
    return lines
