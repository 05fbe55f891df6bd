"""Runs a verb: parses its arguments and converts errors to exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TypeAlias

from npumake.cli.process import set_up
from npumake.cli.screen import SCREEN
from npumake.cli.show import print_error
from npumake.errors import PipelineError

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def run_verb(typed: Sequence[str], verbs: Mapping[str, str], aliases: Mapping[str, str]) -> int:
    """`verbs` and `aliases` name the module of each, which has `arguments` and `run`."""
    set_up()  # first: the parser prints user input and help in any locale
    parser, names = _parser()
    table = {**verbs, **aliases}
    if not typed or typed[0] not in table:
        for name in verbs:
            names.add_parser(name)
        # Prints the version, or an error that lists the verbs. `-- list` may pass it.
        return run_verb([parser.parse_args(typed).verb], verbs, aliases)
    module = import_module(f"{__package__}.{table[typed[0]]}")
    _add_verb(names, typed[0], module)
    arguments = parser.parse_args(typed)
    SCREEN.is_wide = getattr(arguments, "wide", False)
    SCREEN.format = getattr(arguments, "format", None) or "text"
    try:
        return int(module.run(arguments))
    except PipelineError as error:
        print_error(error)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output had enough: `npumake list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    finally:
        SCREEN.use(None)  # a build that ended early has left its stream


class _Version(argparse.Action):
    """Looks the version up on demand: importlib.metadata is slow to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from npumake.cli.version import version_lines

        for line in version_lines():
            SCREEN.line(line)
        parser.exit()


def _parser() -> tuple[argparse.ArgumentParser, Verbs]:
    """The parser without verbs, and where to add them."""
    parser = argparse.ArgumentParser(prog="npumake", description="make for edge NPU models")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    return parser, parser.add_subparsers(dest="verb", required=True, metavar="VERB")


def _add_verb(names: Verbs, name: str, module: ModuleType) -> None:
    """Describes a verb by the docstring of its module."""
    summary, _, rest = (module.__doc__ or "").partition("\n")
    verb = names.add_parser(
        name,
        help=summary.partition(": ")[2],
        description=summary.partition(": ")[2],
        epilog=rest.strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.arguments(verb)
