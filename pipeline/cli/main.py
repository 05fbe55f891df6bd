"""`npumake VERB`: the table of verbs, and the exit code of what went wrong."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

from pipeline.cli import (
    bench,
    build,
    check,
    debug,
    diff,
    handover,
    hb_compile,
    hb_mapper,
    info,
    list_nodes,
    modify,
    new,
    pack,
    perf,
    precision,
    preprocess,
    run,
    secure,
    show_artifact,
    synap,
    verify,
    why,
)
from pipeline.cli.blas import one_thread
from pipeline.cli.show import print_error
from pipeline.errors import PipelineError

# verb: (its arguments, what it does)
VERBS: dict[
    str, tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]
] = {
    "bench": (bench.arguments, bench.run),
    "build": (build.arguments, build.run),
    "check": (check.arguments, check.run),
    "debug": (debug.arguments, debug.run),
    "diff": (diff.arguments, diff.run),
    "handover": (handover.arguments, handover.run),
    "hb_compile": (hb_compile.arguments, hb_compile.run),
    "hb_mapper": (hb_mapper.arguments, hb_mapper.run),
    "info": (info.arguments, info.run),
    "list": (list_nodes.arguments, list_nodes.run),
    "modify": (modify.arguments, modify.run),
    "new": (new.arguments, new.run),
    "pack": (pack.arguments, pack.run),
    "perf": (perf.arguments, perf.run),
    "precision": (precision.arguments, precision.run),
    "preprocess": (preprocess.arguments, preprocess.run),
    "run": (run.arguments, run.run),
    "secure": (secure.arguments, secure.run),
    "show": (show_artifact.arguments, show_artifact.run),
    "synap": (synap.arguments, synap.run),
    "verify": (verify.arguments, verify.run),
    "why": (why.arguments, why.run),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="npumake", description="make for edge NPU models")
    parser.add_argument("--version", action="version", version=f"npumake {version('npumake')}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (arguments, act) in VERBS.items():
        module = sys.modules[act.__module__]
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
