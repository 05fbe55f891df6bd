"""npumake cache: the store of artifacts, here and shared

example:
  npumake cache ls                        # the stored artifacts, the last used first
  npumake cache du
  npumake cache verify                    # reads every byte, and lists damaged files
  npumake cache pin v1.2 digits           # keep the current artifacts
  npumake cache gc --dry-run              # what no project, ref or pin uses
  npumake cache gc --max-size 10G --ref main
  npumake cache keygen                    # the key that signs the uploads of this machine
  npumake cache push --all                # upload all current artifacts
  npumake cache pull                      # fetch everything that the remote has for these projects
  npumake cache export artifacts.tar --sign
  npumake cache import artifacts.tar

exit codes: 0 success; 2 a wrong command, project or key; 5 damage, a failed remote, untrusted
records, or more in use than --max-size
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from npumake.make.remote_files import KEY_FILE, user_folder

# action: the module and the function that runs it, imported when it is chosen
ACTIONS = {
    "keygen": ("cache", "keygen"),
    "ls": ("cache_contents", "list_entries"),
    "du": ("cache_contents", "usage"),
    "verify": ("cache_contents", "verify"),
    "gc": ("cache_sweep", "sweep"),
    "pin": ("cache_sweep", "pin"),
    "unpin": ("cache_sweep", "remove_pin"),
    "push": ("cache_transfer", "push"),
    "pull": ("cache_transfer", "pull"),
    "export": ("cache_transfer", "export"),
    "import": ("cache_transfer", "import_"),
}
Add = Callable[..., argparse.ArgumentParser]


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _contents(actions.add_parser)
    _sweep(actions.add_parser)
    _transfer(actions.add_parser)


def _contents(add: Add) -> None:
    _json(add("ls", help="list the stored artifacts, the last used first"))
    _json(add("du", help="show its size, and the part in use"))
    _json(add("verify", help="read everything that is stored, and list damaged files"))


def _sweep(add: Add) -> None:
    from npumake.cli.cache_sweep import size_argument

    gc = add("gc", help="remove what no project, ref, pin or pending upload uses")
    gc.add_argument(
        "--max-size",
        type=size_argument,
        metavar="SIZE",
        help="keep unused artifacts while there is room, the last used first: 10G",
    )
    gc.add_argument(
        "--ref",
        action="append",
        default=[],
        metavar="REF",
        help="keep the artifacts of a branch, tag or commit of git",
    )
    gc.add_argument(
        "--workspace",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="keep the artifacts of another workspace that shares this cache",
    )
    gc.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    _json(gc)
    pin = add("pin", help="keep the current artifacts, under a name")
    pin.add_argument("name", metavar="NAME", help="v1.2, for example")
    _projects(pin)
    add("unpin", help="drop a name").add_argument("name", metavar="NAME")


def _transfer(add: Add) -> None:
    keygen = add("keygen", help="create a signing key, print its public half")
    keygen.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"instead of {KEY_FILE} of the user"
    )
    push = add("push", help="upload everything that is pending, without a time limit")
    push.add_argument("--all", action="store_true", help="and every artifact that is current here")
    pull = add("pull", help="fetch everything that the remote has, without a time limit")
    _projects(pull)
    _json(pull)
    export = add("export", help="write the artifacts of projects into one file")
    export.add_argument("file", type=Path, metavar="FILE")
    _projects(export)
    export.add_argument("--sign", action="store_true", help="with the key of `keygen`")
    imported = add("import", help="verify and store the content of such a file")
    imported.add_argument("file", type=Path, metavar="FILE")
    imported.add_argument(
        "--unsigned", action="store_true", help="accept records without a signature, as your own"
    )


def _projects(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help="all when none is named")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for machines")


def run(arguments: argparse.Namespace) -> int:
    module, function = ACTIONS[arguments.action]
    action: Any = getattr(import_module(f"{__package__}.{module}"), function)
    return int(action(arguments))


def keygen(arguments: argparse.Namespace) -> int:
    from npumake.cache.remote.envelope import key_text
    from npumake.cache.remote.keys import generate

    file = arguments.output or user_folder() / KEY_FILE
    public = key_text(generate(file))
    print(f"private key: {file}, which signs the uploads of this machine; keep it secret")
    print(f"for trust.yaml of its readers:\n\nread:\n  NAME: {public}")
    return 0
