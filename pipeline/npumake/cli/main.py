"""`npumake VERB`: the table of verbs.

npumake.cli.verb is imported once the signal handler runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from npumake.cli.signals import end_at_signals

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


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb and returns the exit code. Without `argv`: sys.argv, with signals handled."""
    if argv is None:
        end_at_signals()
        if "_ARGCOMPLETE" in os.environ:  # a shell completes a command line
            from npumake.cli.complete import answer

            answer(VERBS, ALIASES)
    from npumake.cli.verb import run_verb

    return run_verb(sys.argv[1:] if argv is None else argv, VERBS, ALIASES)


if __name__ == "__main__":
    raise SystemExit(main())
