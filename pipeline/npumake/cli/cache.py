"""npumake cache: signing keys of a shared cache, and pending uploads

example:
  npumake cache keygen            # the key that signs what this machine uploads
  npumake cache push              # upload what the last builds left pending
  npumake cache push --all        # upload all current artifacts, too

exit codes of push: 0 everything is uploaded, 2 no remote or no key, 5 the remote failed
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cli.projects import selected
from npumake.digest import of_document
from npumake.errors import CacheError, ProjectError
from npumake.make.build import Build
from npumake.make.remote_files import KEY_FILE, NO_REMOTE, user_folder

if TYPE_CHECKING:
    from npumake.cache.remote.layered import LayeredStore


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    keygen = actions.add_parser("keygen", help="make a signing key, print its public half")
    keygen.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"instead of {KEY_FILE} of the user"
    )
    push = actions.add_parser("push", help="upload what is waiting, however long it takes")
    push.add_argument("--all", action="store_true", help="and every artifact that is current here")


def run(arguments: argparse.Namespace) -> int:
    return ACTIONS[arguments.action](arguments)


def _keygen(arguments: argparse.Namespace) -> int:
    from npumake.cache.remote.envelope import key_text
    from npumake.cache.remote.keys import generate

    file = arguments.output or user_folder() / KEY_FILE
    public = key_text(generate(file))
    print(f"private key: {file}, which signs what this machine uploads; show it to nobody")
    print(f"trust.yaml of whoever is to read it:\n\nread:\n  NAME: {public}")
    return 0


def _push(arguments: argparse.Namespace) -> int:
    builds = selected(Path.cwd(), [])
    store = builds[0].memory.layered
    if store is None:
        raise ProjectError("no remote cache is configured", hint=NO_REMOTE)
    if store.far is None or store.outbox is None:
        raise ProjectError(f"nothing may be uploaded: {_obstacle(store)}")
    store.far.forgive()
    for key in _current(builds) if arguments.all else ():
        store.outbox.add(key)
    from npumake.cache.remote.outbox import FOREVER_S

    uploader = store.uploader()
    left = uploader.finish(FOREVER_S) if uploader else 0
    if uploader and left:
        raise CacheError(uploader.note or store.note or "the remote cache failed")
    print(f"{uploader.uploaded if uploader else 0} uploaded to {store.far.address}")
    return 0


def _obstacle(store: LayeredStore) -> str:
    if store.far is None:
        return "NPUMAKE_REMOTE=off"
    if store.signing is None:
        return "there is no signing key; npumake cache keygen makes one"
    return "NPUMAKE_REMOTE=read, or only the project names the remote and config.yaml not its host"


def _current(builds: Sequence[Build]) -> Iterator[str]:
    """The keys of current artifacts whose records were written here."""
    for build in builds:
        for node in build.plan.nodes:
            stamp = build.stamp(node)
            if stamp is None or not build.intact(node, stamp):
                continue
            key = of_document(stamp.document)
            if build.memory.near.recall(key) is not None:
                yield key


ACTIONS = {"keygen": _keygen, "push": _push}
