"""npumake show: the contents of an artifact, and its inputs

example:
  npumake show projects/digits/out/quantized.rdk-x5.onnx
  npumake show digits:rdk-x5/compiled --json
  npumake show handed                            # verify the files of a hand-over
  npumake show both.hybrid -m a                  # one of a packed model
  npumake show model.secure.hybrid --vendor-certificate vendor.pem   # verify the signature
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake import digest
from npumake.cli.projects import builds, place
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.cli.selection import built_artifact, project_of, selection
from npumake.cli.terminal import value_text
from npumake.digest import Json
from npumake.errors import PipelineError, ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.node import Node
from npumake.make.stamp import Stamp


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ARTIFACT", help="a file, a node, or PROJECT[:TARGET]")
    parser.add_argument("-m", dest="name", metavar="NAME", help="one of a packed model")
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)
    format_argument(parser)
    for flag in ("--vendor-certificate", "--revocation-list"):
        help_text = "verifies the signature of a secure model"
        parser.add_argument(flag, type=Path, metavar="FILE", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    from npumake.bundle.pack import chosen
    from npumake.debug.describe import describe, describe_bundle

    path, key_document = artifact_of(arguments.artifact)
    summary = describe_bundle(chosen(path, arguments.name)) if arguments.name else describe(path)
    description = digest.plain(summary)
    if arguments.vendor_certificate:
        _check_signature(path, arguments.vendor_certificate, arguments.revocation_list)
        description["facts"]["checked"] = f"yes, against {arguments.vendor_certificate.name}"
    document = {
        "artifact": arguments.artifact,
        **_measured(path),
        **description,
        "made from": key_document,
    }
    if arguments.json:
        print(digest.text(document, indent=1))
    else:
        _print(document)
    return 0


def _measured(path: Path) -> dict[str, Json]:
    """Size and digest of a file; empty for a directory."""
    if path.is_dir():
        return {}
    return {"bytes": path.stat().st_size, "sha256": digest.of_file(path)}


def _check_signature(path: Path, vendor_certificate: Path, revocation_list: Path | None) -> None:
    """Raises GraphError, with the reason, unless an authorized signer signed the file."""
    from npumake.bundle.secure import Keys, seal_of, verified

    keys = Keys.read(vendor_certificate, revocation_list=revocation_list)
    verified(seal_of(path.read_bytes(), path.name), keys, path.name)


def artifact_of(name: str) -> tuple[Path, Json]:
    """The artifact's file or a hand-over's directory, and its key document, None if unknown."""
    from npumake.debug.handover_report import is_handover

    path = Path(name)
    if is_handover(path):
        return path, None
    directory, called = place(name)
    nodes: dict[str, tuple[Build, Node]] = {}
    errors: dict[str, PipelineError] = {}  # by project
    for project, build in builds(directory):
        if isinstance(build, Build):
            nodes |= {node.name: (build, node) for node in build.plan.nodes}
        else:
            errors[project] = build
    if called not in nodes and path.is_file():
        return path, None
    if project_of(called) in errors:
        raise errors[project_of(called)]
    if called not in nodes and project_of(called) not in {project_of(node) for node in nodes}:
        raise ProjectError(f"no file and no node `{name}`", hint=did_you_mean(name, nodes))
    build, node = nodes[called] if called in nodes else selection(name).compiled
    return built_artifact(build, node, name), _document(build, node)


def _document(build: Build, node: Node) -> Json:
    stamp: Stamp | None = build.stamp(node)
    if stamp is None or stamp.digest != digest.of_file(build.artifact(node)):
        return None  # the file changed after its stamp
    return {**stamp.document, "key": digest.of_document(stamp.document)}


def _print(document: Json) -> None:
    from npumake.cli.tables import artifact_table

    size = f", {document['bytes']:,} bytes" if "bytes" in document else ""
    print(f"{document['artifact']}: {document['kind']}{size}")
    if size:
        print(f"sha256 {document['sha256']}")
    for name, value in document["facts"].items():
        print(f"{name}: {value_text(value)}")
    for role in ("inputs", "outputs"):
        for line in document[role]:
            print(f"{role[:-1]} {line}")
    SCREEN.table(artifact_table(document["columns"], document["rows"], SCREEN.width))
    if size:
        _print_origin(document["made from"])


def _print_origin(key_document: Json) -> None:
    if key_document is None:
        print("made from: not known here (no stamp beside it, or it was changed since)")
        return
    print(f"made by {key_document['stage']}, key {key_document['key']}")
    for kind in ("inputs", "params", "tools"):
        for name, value in key_document[kind].items():
            print(f"  {kind[:-1]:<6} {name}: {value_text(value)}")
    for route, files in key_document["sources"].items():
        print(f"  source {route}: {len(files)} file(s)")
