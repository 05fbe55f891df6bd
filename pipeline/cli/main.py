"""`npumake VERB`: the table of verbs, and the exit code of what went wrong."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

from pipeline.cli import (
    build,
    check,
    hb_compile,
    hb_mapper,
    list_nodes,
    new,
    precision,
    show_artifact,
    synap,
    why,
)
from pipeline.cli.blas import one_thread
from pipeline.cli.show import print_error
from pipeline.errors import PipelineError

# verb: (its arguments, what it does)
VERBS: dict[
    str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]
] = {
    "build": (build.arguments, build.run),
    "check": (check.arguments, check.run),
    "hb_compile": (hb_compile.arguments, hb_compile.run),
    "hb_mapper": (hb_mapper.arguments, hb_mapper.run),
    "list": (list_nodes.arguments, list_nodes.run),
    "new": (new.arguments, new.run),
    "precision": (precision.arguments, precision.run),
    "show": (show_artifact.arguments, show_artifact.run),
    "synap": (synap.arguments, synap.run),
    "why": (why.arguments, why.run),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="npumake", description="make for edge NPU models")
    parser.add_argument("--version", action="version", version=f"npumake {version('npumake')}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (arguments, run) in VERBS.items():
        module = sys.modules[run.__module__]
        summary, _, rest = (module.__doc__ or "").partition("\n")
        verb = verbs.add_parser(
            name,
            help=summary.partition(": ")[2],
            description=summary.partition(": ")[2],
            epilog=rest.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        arguments(verb)
    given = parser.parse_args(argv)
    one_thread()
    try:
        return VERBS[given.verb][1](given)
    except PipelineError as error:
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output had enough: `npumake list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    raise SystemExit(main())
