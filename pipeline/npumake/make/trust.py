"""Which records are trusted, and the key that signs ours, by the user's settings."""

from __future__ import annotations

import os
from pathlib import Path

from npumake.cache.remote.envelope import key_bytes
from npumake.cache.remote.keys import Secret, SigningKey
from npumake.cache.remote.trust import Policy
from npumake.errors import ProjectError
from npumake.make.remote_files import KEY_FILE, TRUST_FILE, USER_FILE, user_folder
from npumake.project.document import Document
from npumake.project.reader import built
from npumake.project.shared_cache import (
    SecretSource,
    TrustFile,
    UserFile,
    checked_document,
    read,
)

TRUST = "NPUMAKE_CACHE_TRUST"
SIGNING = {
    "env": "NPUMAKE_SIGNING_KEY",
    "file": "NPUMAKE_SIGNING_KEY_FILE",
    "command": "NPUMAKE_SIGNING_KEY_COMMAND",
}


def signing_key(user: UserFile) -> SigningKey | None:
    settings = {way: os.environ[name] for way, name in SIGNING.items() if os.environ.get(name)}
    if "env" in settings:
        return SigningKey(Secret(env=SIGNING["env"]))
    if "file" in settings:
        return SigningKey(Secret(file=Path(settings["file"])))
    if "command" in settings:
        import shlex  # noqa: PLC0415  # rarely used

        return SigningKey(Secret(command=tuple(shlex.split(settings["command"]))))
    if user.cache.signing_key is not None:
        return SigningKey(secret_of(user.cache.signing_key, "signing_key"))
    usual = user_folder() / KEY_FILE
    return SigningKey(Secret(file=usual)) if usual.is_file() else None


def users_key() -> SigningKey:
    """Raises ProjectError if the user has none."""
    key = signing_key(read(user_folder() / USER_FILE, UserFile))
    if key is None:
        hint = f"npumake cache keygen creates one, {user_folder() / KEY_FILE}"
        raise ProjectError("there is no signing key", hint=hint)
    return key


def users_policy(workspace: Path) -> Policy:
    """The policy of the user's settings. Raises ProjectError."""
    return policy_of(workspace, signing_key(read(user_folder() / USER_FILE, UserFile)))


def policy_of(workspace: Path, signing: SigningKey | None) -> Policy:
    """The trust of NPUMAKE_CACHE_TRUST, else of the user's and the workspace's files; without them,
    our own key."""
    if setting := os.environ.get(TRUST):
        if not os.path.lexists(setting):
            raise ProjectError("no such file", TRUST, f"{setting} must hold public keys")
        return _read_policy([Path(setting)])
    files = [user_folder() / TRUST_FILE, workspace / TRUST_FILE]
    existing = [file for file in files if os.path.lexists(file)]
    if existing or signing is None:
        return _read_policy(existing)
    return Policy(lambda: {signing.public: "this machine"})


def _read_policy(files: list[Path]) -> Policy:
    readers: dict[bytes, str] = {}
    revoked: set[bytes] = set()
    for file in files:
        document = checked_document(file, TrustFile)
        trust: TrustFile = built(TrustFile, document.data)
        for name, text in trust.read.items():
            readers[_key(text, document, ("read", name))] = name
        for number, text in enumerate(trust.revoked):
            revoked.add(_key(text, document, ("revoked", number)))
    return Policy(lambda: readers, frozenset(revoked))


def _key(text: str, document: Document, route: tuple[str | int, ...]) -> bytes:
    try:
        return key_bytes(text)
    except ValueError:
        hint = "ed25519: and 44 characters, as `npumake cache keygen` prints it"
        raise ProjectError(
            f"`{text}` is not a public key", document.places[route].value, hint
        ) from None


def secret_of(source: SecretSource, called: str) -> Secret:
    ways = [source.env is not None, source.file is not None, bool(source.command)]
    if sum(ways) != 1:
        where = str(user_folder() / USER_FILE)
        raise ProjectError(f"`{called}` needs exactly one of env, file and command", where)
    return Secret(source.env, beside(source.file), source.command)


def beside(path: str | None) -> Path | None:
    """A path in the user's file, resolved from its folder."""
    return None if path is None else user_folder() / os.path.expanduser(path)
