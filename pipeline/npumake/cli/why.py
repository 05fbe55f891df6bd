"""npumake why: the changes since an artifact was built

example:
  npumake why                          # every node that is not current
  npumake why digits:rdk-x5/calibrated
  npumake why digits@p999              # a variant
  npumake why out/quantized.rdk-x5.onnx
  npumake why --remote                 # with their state in the remote cache
"""

from __future__ import annotations

import argparse

from npumake import digest
from npumake.cli.projects import places, refuse_no_remote, selected
from npumake.cli.selection import aliases
from npumake.errors import ProjectError, did_you_mean
from npumake.make.build import NodeState


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "nodes",
        nargs="*",
        metavar="NODE",
        help="artifacts, projects, targets, or folders; all when none",
    )
    parser.add_argument("--remote", action="store_true", help="show what the remote cache has")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(arguments: argparse.Namespace) -> int:
    chosen: dict[str, NodeState] = {}
    for directory, names in places(arguments.nodes).items():
        states: dict[str, NodeState] = {}
        for build in selected(directory, []):
            if arguments.remote:
                refuse_no_remote(build.memory)
            states |= build.states(arguments.remote)
            build.memory.save()
        chosen |= _chosen(states, names)
    if arguments.json:
        document = {n: {"status": s.status, "reasons": list(s.reasons)} for n, s in chosen.items()}
        print(digest.text(document, indent=1))
        return 0
    print(_text(chosen, is_complete=bool(arguments.nodes)))
    return 0


def _text(states: dict[str, NodeState], is_complete: bool) -> str:
    """The changed nodes and the number of nodes behind them; all nodes with `is_complete`."""
    lines: list[str] = []
    following = 0
    for name, state in states.items():
        if not is_complete and state.status == "current":
            continue
        if not is_complete and state.follows:
            following += 1
            continue
        lines += [f"{name}  {state.status}", *(f"  {reason}" for reason in state.reasons)]
    if following:
        lines.append(f"and {following} behind {'it' if len(lines) == 2 else 'them'}")
    return "\n".join(lines) or "every node is current"


def _chosen(states: dict[str, NodeState], names: list[str]) -> dict[str, NodeState]:
    """The states of the named nodes; a project or variant means all of its nodes."""
    by_node = {node: aliases(node) for node in states}
    answers = {answer for group in by_node.values() for answer in group}
    for name in names:
        if name not in answers:
            raise ProjectError(f"no node `{name}`", hint=did_you_mean(name, answers))
    return {
        node: state for node, state in states.items() if not names or by_node[node] & set(names)
    }
