"""`npumake VERB`: the table of verbs.

The help imports nothing, so that it takes hardly more than Python's own start. npumake.cli.verb is
imported once the signal handler runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # without `typing`, which is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# verb: its module with `arguments` and `run`; only the module of the chosen verb is imported
VERBS = {
    "attest": "attest",
    "bench": "bench",
    "build": "build",
    "bundle": "bundle",
    "cache": "cache",
    "check": "check",
    "ci": "ci",
    "compare": "compare",
    "completion": "completion",
    "debug": "debug",
    "diff": "diff",
    "doctor": "doctor",
    "graph": "graph",
    "handover": "handover",
    "hb_compile": "vendors.hb_compile",
    "hb_mapper": "vendors.hb_mapper",
    "info": "info",
    "list": "list_nodes",
    "lock": "lock",
    "modify": "modify",
    "new": "new",
    "pack": "pack",
    "perf": "perf",
    "precision": "precision",
    "preprocess": "preprocess",
    "report": "report",
    "run": "run",
    "secure": "secure",
    "show": "show_artifact",
    "synap": "vendors.synap",
    "targets": "targets",
    "validate": "validate",
    "verify": "verify",
    "watch": "watch",
    "why": "why",
    "worker": "worker",
}
# Vendors' programs with the same options. They are not installed as commands: that would hide the
# vendor's tool, which `npumake handover --run` calls.
ALIASES = {
    "hb_eval_preprocess": "preprocess",
    "hb_model_info": "info",
    "hb_model_modifier": "modify",
    "hb_model_verifier": "verify",
    "hb_pack": "pack",
    "hb_perf": "perf",
    "hb_verifier": "vendors.hb_verifier",
    "hmct-debugger": "debug",
    "hrt_model_exec": "vendors.hrt_model_exec",
}


HELP = """\
usage: npumake [-h] [--version] VERB ...

make for edge NPU models

verbs:
{verbs}

options:
  -h, --help  show this help message and exit
  --version   show the version and exit

`npumake VERB --help` shows the options of a verb and examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb and returns the exit code. Without `argv`: sys.argv, with signals handled."""
    typed = sys.argv[1:] if argv is None else list(argv)
    if typed and typed[0] in ("-h", "--help"):
        return _print_help()
    if argv is None:
        from npumake.cli.signals import end_at_signals

        end_at_signals()
        if "_ARGCOMPLETE" in os.environ:  # a shell completes a command line
            from npumake.cli.complete import answer

            answer(VERBS, ALIASES)
    from npumake.cli.verb import run_verb

    return run_verb(typed, VERBS, ALIASES)


def _print_help() -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # LC_ALL=POSIX cannot print all of it
    verbs = "\n".join(f"  {verb:10} {summary}" for verb, summary in _summaries())
    print(HELP.format(verbs=verbs), end="")
    return 0


def _summaries() -> Iterator[tuple[str, str]]:
    """Each verb with the first line of its module, which is read and not imported."""
    room = os.path.dirname(__file__)
    for verb, module in VERBS.items():
        with open(os.path.join(room, *module.split(".")) + ".py", encoding="utf-8") as source:
            yield verb, source.readline().partition(": ")[2].strip()


if __name__ == "__main__":
    raise SystemExit(main())
