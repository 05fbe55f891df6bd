"""npumake pack: several compiled models in one file

example:
  npumake pack a.hybrid b.hybrid -o both.hybrid
  npumake run both.hybrid -m a --input cat.jpg
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake.errors import ProjectError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="HYBRID", help="or PROJECT[:TARGET]")
    parser.add_argument("-o", "--output_name", type=Path, required=True, metavar="FILE")


def run(arguments: argparse.Namespace) -> int:
    from npumake.bundle.pack import pack
    from npumake.cache.publish import replacing
    from npumake.cli.selection import artifact_path
    from npumake.runtime.picture import read

    files = [artifact_path(name) for name in arguments.models]
    stems = [file.stem for file in files]
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise ProjectError(f"two models are called `{twice[0]}`", hint="rename one")
    data = pack({file.stem: read(file) for file in files})
    with replacing(arguments.output_name) as temporary:
        temporary.write_bytes(data)
    print(f"packed {len(stems)} models into {arguments.output_name}")
    return 0
