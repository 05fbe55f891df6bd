"""Checks a compiled file against its statement: digest, signature, chain, and a rebuild."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from npumake import digest
from npumake.cli.projects import selected
from npumake.digest import Json
from npumake.errors import GateError, ProjectError
from npumake.lifetime.temporaries import temporary_folder
from npumake.make.build import Build
from npumake.make.memory import workspace
from npumake.make.node import Node
from npumake.make.statement import MAX_BYTES, Statement, read_statement

SUFFIXES = (".intoto.dsse.json", ".intoto.json")  # the first that exists
NO_STATEMENT = "npumake attest writes one; --statement names it"


def verify_statement(arguments: argparse.Namespace) -> int:
    """Raises GateError if a check fails."""
    artifact: Path = arguments.artifact
    if not artifact.is_file():
        raise ProjectError("no such file", str(artifact))
    file = arguments.statement or _beside(artifact)
    project = arguments.project or _project_around(artifact)
    statement, signer = _statement(file, project or Path.cwd(), arguments.signed)
    content = digest.of_file(artifact)
    if content != statement.digest:
        message = (
            f"not the file of the statement: SHA-256 {content[:12]}…, not {statement.digest[:12]}…"
        )
        raise GateError(message, str(artifact), f"the statement is {file}")
    print(f"{artifact.name}: SHA-256 {content}, as in the statement")
    print(f"statement: {signer}")
    _check_chain(artifact, statement)
    if arguments.rebuild:
        if project is None:
            hint = "name its folder with --project"
            raise ProjectError("no project around the file", str(artifact), hint)
        _rebuild(project, statement, artifact)
    return 0


def _beside(artifact: Path) -> Path:
    files = [artifact.with_name(artifact.name + suffix) for suffix in SUFFIXES]
    statement_file = next((file for file in files if file.is_file()), None)
    if statement_file is None:
        raise ProjectError("the file has no statement", str(files[-1]), NO_STATEMENT)
    return statement_file


def _project_around(artifact: Path) -> Path | None:
    folders = artifact.absolute().parents
    return next((folder for folder in folders if (folder / "project.yaml").is_file()), None)


def _statement(file: Path, project: Path, must_be_signed: bool) -> tuple[Statement, str]:
    """The statement and a sentence on its signature. Raises GateError for a signature that the
    user does not trust."""
    from npumake.cache.remote.dsse import STATEMENT, opened
    from npumake.make.trust import users_policy

    data = _read(file)
    envelope = opened(data, users_policy(workspace(project)))
    if envelope is None:
        statement = read_statement(data, str(file))
        if must_be_signed:
            raise GateError("the statement is not signed", str(file), "npumake attest --sign")
        return statement, "not signed"
    if envelope.verdict.standing != "trusted":
        message = str(envelope.verdict).replace("its record", "the statement")
        raise GateError(message, str(file), "trust.yaml lists the trusted keys")
    if envelope.type != STATEMENT:
        raise ProjectError(f"a signed {envelope.type}, not a statement", str(file), NO_STATEMENT)
    return read_statement(envelope.payload, str(file)), str(envelope.verdict)


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise ProjectError("no such file", str(file), NO_STATEMENT)
    if (size := file.stat().st_size) > MAX_BYTES:
        raise ProjectError(f"a statement of {size:,} bytes; it may have {MAX_BYTES:,}", str(file))
    return file.read_bytes()


# -- the chain inside the file -----------------------------------------------------------------


def _check_chain(artifact: Path, statement: Statement) -> None:
    """Raises GateError if the chain inside the file is not that of the statement."""
    from npumake.bundle.chain import MODEL_ROUTES, links_of

    chain = _chain(artifact)
    if chain is None:
        print("chain: none in the file; the statement has it")
        return
    stages = {name.rpartition("/")[2]: content for name, content in statement.artifacts.items()}
    trained = {file.name: file.digest for file in statement.files if file.route in MODEL_ROUTES}
    expected = {**trained, **stages}
    links = links_of(chain)
    for name, link in links.items():
        if link != expected.get(name):
            message = f"`{name}` in the chain of the file is not that of the statement"
            raise GateError(message, str(artifact))
    print(f"chain: {len(links)} links down to {', '.join(trained)}, as in the statement")


def _chain(artifact: Path) -> Mapping[str, Json] | None:
    from npumake.bundle.chain import chain_in
    from npumake.graph import parse

    data = artifact.read_bytes()
    notes = parse(data, artifact.name).metadata if artifact.suffix == ".onnx" else {}
    return chain_in(data, notes)


# -- the rebuild -------------------------------------------------------------------------------


def _rebuild(project: Path, statement: Statement, artifact: Path) -> None:
    """Raises GateError if the project or the rebuilt file differs."""
    from npumake.make.rebuild import hold_project, rebuilt, tool_notes

    (build,) = selected(project, [])
    node = _node(build, statement)
    hold_project(build, node, statement)
    notes = tool_notes(build, node, statement)
    for note in notes:
        print(f"note: {note}")
    with temporary_folder() as folder:
        difference = rebuilt(build, node, statement, artifact, folder)
    if difference is None:
        print("rebuilt: equal to the byte")
        return
    tensor = difference.tensor or "its first artifact is not here, so that no tensor can be named"
    hint = f"since the statement: {', '.join(notes)}" if notes else ""
    message = f"the rebuilt file differs, first in `{difference.node}`: {tensor}"
    raise GateError(message, str(artifact), hint)


def _node(build: Build, statement: Statement) -> Node:
    """Raises GateError for a project without that compiled file."""
    from npumake.make.attested_build import compiled_nodes

    for node in compiled_nodes(build):
        if (node.variant, node.target) == (statement.variant, statement.target):
            return node
    variant = f"@{statement.variant}" if statement.variant else ""
    message = f"the project does not build `{statement.target}{variant}`"
    raise GateError(message, str(build.directory))
