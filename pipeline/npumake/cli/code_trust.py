"""Options for trust: keys of secure models, and permission to run code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cli import keys

if TYPE_CHECKING:
    from npumake.bundle.archive import Bundle
    from npumake.custom.operators import Operators
    from npumake.runtime import Session

ALLOWING = "--allow-code"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        ALLOWING,
        action="store_true",
        help="run the code in the file: Python of custom operators, a .vmfb",
    )
    parser.add_argument(
        "--operators",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="Python of custom operators, your own",
    )
    keys.arguments(parser)


def session(
    arguments: argparse.Namespace, file: Path, name: str | None = None, threads: int | None = None
) -> Session:
    """A session of the file, or of its model `name`. Raises PipelineError."""
    from npumake.runtime import Session

    return Session(
        file,
        operators=arguments.operators,
        allow_code=arguments.allow_code,
        keys=keys.keys_of(arguments),
        threads=threads,
        model=name,
    )


def operators(arguments: argparse.Namespace, bundle: Bundle, file: Path) -> Operators:
    """The operators that a session of the bundle runs. Raises PipelineError."""
    from npumake.runtime.session import operators_of

    return operators_of(bundle, file.name, arguments.operators, arguments.allow_code)
