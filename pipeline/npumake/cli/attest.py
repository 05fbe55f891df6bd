"""npumake attest: write the provenance of compiled files, for supply-chain tools

For each compiled file it writes beside it, or into a folder:
  <file>.intoto.json     in-toto Statement v1, SLSA provenance v1
  <file>.cdx.json        CycloneDX 1.6 ML-BOM: trained model, calibration set, tools, figures
  <file>.*.dsse.json     with --sign, both in a DSSE envelope, signed with the key of the cache

example:
  npumake attest                            # every compiled file here
  npumake attest digits --sign
  npumake attest out/digits.rdk-x5.hybrid -o release/
  npumake verify out/digits.rdk-x5.hybrid --rebuild
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from npumake.cache.publish import replacing
from npumake.cli.selection import aliases, chosen
from npumake.errors import ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.node import Node


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="FILE", help="or its node, a project; all when none is named"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="default: beside the file"
    )
    parser.add_argument("--sign", action="store_true", help="with the signing key of the cache")
    parser.add_argument(
        "--builder-id",
        metavar="URI",
        help="of the service that built, for the statement",
    )


def run(arguments: argparse.Namespace) -> int:
    from npumake.cache.remote.dsse import BOM, STATEMENT, signed
    from npumake.make.attested_build import attested
    from npumake.make.ml_bom import bom_bytes, bom_of
    from npumake.make.statement import BUILDER, statement_bytes, statement_of
    from npumake.make.trust import users_key

    key = users_key() if arguments.sign else None
    release = version("npumake")
    for build, node in list(_compiled(arguments.names)):
        built = attested(build, node)
        statement = statement_of(built, release, arguments.builder_id or BUILDER)
        documents = {"intoto": (statement_bytes(statement), STATEMENT)}
        documents["cdx"] = (bom_bytes(bom_of(built, release)), BOM)
        folder = arguments.output or built.file.parent
        for kind, (data, media) in documents.items():
            files = {f"{kind}.json": data}
            if key is not None:
                files[f"{kind}.dsse.json"] = signed(data, media, key)
            for suffix, content in files.items():
                path = folder / f"{built.file.name}.{suffix}"
                with replacing(path) as temporary:
                    temporary.write_bytes(content)
                print(path)
        build.memory.save()
    return 0


def _compiled(names: list[str]) -> Iterator[tuple[Build, Node]]:
    """The named compiled files. Raises ProjectError."""
    from npumake.make.attested_build import compiled_nodes

    for build, called, nodes in chosen(names):
        compiled = compiled_nodes(build)
        for name in called:
            if not any(name in aliases(node.name) for node in compiled):
                hint = did_you_mean(name, (node.name for node in compiled))
                raise ProjectError(f"`{name}` is not a compiled file", hint=hint)
        yield from ((build, node) for node in compiled if node in nodes)
