"""Runs a verb: parses its arguments and converts errors to exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any

from npumake.cli.process import set_up
from npumake.cli.screen import SCREEN
from npumake.cli.show import print_error
from npumake.errors import PipelineError, did_you_mean


def run_verb(typed: Sequence[str], verbs: Mapping[str, str], aliases: Mapping[str, str]) -> int:
    """`verbs` and `aliases` name the module of each, which has `arguments` and `run`."""
    set_up()  # first: the parser prints user input and help in any locale
    table = {**verbs, **aliases}
    typed = typed[1:] if typed[:1] == ["--"] else typed  # Python 3.11 takes it for the verb
    if not typed or typed[0] not in table:
        # Prints the version, or an error with the nearest verb.
        return run_verb([parser_of(dict.fromkeys(verbs)).parse_args(typed).verb], verbs, aliases)
    module = import_module(f"{__package__}.{table[typed[0]]}")
    arguments = parser_of({typed[0]: module}).parse_args(typed)
    SCREEN.is_wide = getattr(arguments, "wide", False)
    SCREEN.format = getattr(arguments, "format", None) or "text"
    is_json = getattr(arguments, "json", False)
    try:
        with nullcontext() if is_json else SCREEN.exporting():
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


class _Parser(argparse.ArgumentParser):
    """Names what was probably meant where a verb, an option or a choice does not exist."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(str(value), map(str, action.choices or ()))
            error.message = f"unknown value {value!r}; {hint}"
            raise

    def parse_args(self, *typed: Any, **rest: Any) -> Any:
        arguments, unknown = self.parse_known_args(*typed, **rest)
        if unknown:
            self._refuse(arguments, unknown)
        return arguments

    def _refuse(self, arguments: argparse.Namespace, unknown: Sequence[str]) -> None:
        """Ends with exit code 2."""
        message = f"unrecognized arguments: {' '.join(unknown)}"
        name = unknown[0].partition("=")[0]
        options = [*_options(self, arguments)]
        near = get_close_matches(name, options, n=1, cutoff=0.6) if name.startswith("-") else []
        self.error(message + (f"; did you mean `{near[0]}`?" if near else ""))


def _options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Iterator[str]:
    """The options of a parser and of the verbs that were chosen."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            chosen = action.choices.get(str(getattr(arguments, action.dest, None)))
            if chosen is not None:
                yield from _options(chosen, arguments)


def parser_of(modules: Mapping[str, ModuleType | None]) -> argparse.ArgumentParser:
    """The parser of these verbs; one without its module has no arguments yet."""
    parser = _Parser(prog="npumake", description="make for edge NPU models")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, module in modules.items():
        if module is None:
            verbs.add_parser(name)
            continue
        summary, _, rest = (module.__doc__ or "").partition("\n")
        verb = verbs.add_parser(
            name,
            help=summary.partition(": ")[2],
            description=summary.partition(": ")[2],
            epilog=rest.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.arguments(verb)
    return parser
