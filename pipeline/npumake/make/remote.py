"""The remote cache of a workspace: its address, credentials and trust.

NPUMAKE_CACHE_REMOTE, npumake.yaml of the workspace, config.yaml of the user: the first that names a
remote counts. Credentials are sent only to addresses that the user configured: the one in
NPUMAKE_CACHE_REMOTE or config.yaml, and the origins that config.yaml lists. A remote that only the
project names is read without credentials, and nothing is uploaded to it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from npumake.cache.local import LocalStore
from npumake.cache.remote.address import ANONYMOUS, Address, Credentials, origin_of, parsed
from npumake.cache.remote.far import Far
from npumake.cache.remote.keys import SigningKey
from npumake.cache.remote.layered import LayeredStore
from npumake.cache.remote.outbox import WAIT_S, Outbox, Uploader
from npumake.cache.remote.schemes import transport_to
from npumake.cache.remote.transport import PATIENCE, Patience, Transport
from npumake.cache.remote.trust import Policy
from npumake.errors import ProjectError
from npumake.make.remote_files import (
    MODE,
    MODES,
    REMOTE,
    USER_FILE,
    WORKSPACE_FILE,
    user_folder,
)
from npumake.make.trust import beside, policy_of, secret_of, signing_key
from npumake.project.shared_cache import Host, SecretSource, UserFile, WorkspaceFile, read

Mode = Literal["read", "write", "off"]
WAIT_VARIABLE, PATIENCE_VARIABLE = "NPUMAKE_CACHE_WAIT", "NPUMAKE_CACHE_PATIENCE"
# Only sent to the remote that NPUMAKE_CACHE_REMOTE names.
USER, PASSWORD, TOKEN = "NPUMAKE_CACHE_USER", "NPUMAKE_CACHE_PASSWORD", "NPUMAKE_CACHE_TOKEN"
CERTIFICATES = {
    "certificate": "NPUMAKE_CACHE_CERTIFICATE",
    "certificate_key": "NPUMAKE_CACHE_CERTIFICATE_KEY",
    "authority": "NPUMAKE_CACHE_AUTHORITY",
}


@dataclass(frozen=True)
class NamedRemote:
    """A remote and where it is configured: only the user's own settings allow credentials."""

    address: Address
    user: Credentials  # in the URL itself
    by: Literal["environment", "user", "workspace"]


@dataclass(frozen=True)
class Setup:
    """The configuration of a remote. `allowed`: the user, not only the project, named
    it."""

    named: NamedRemote
    mode: Mode
    host: Host | None
    policy: Policy
    signing: SigningKey | None

    @property
    def allowed(self) -> bool:
        return self.host is not None or self.named.by != "workspace"

    @property
    def uploads(self) -> bool:
        return self.allowed and self.mode == "write" and self.signing is not None


def layered(near: LocalStore, workspace: Path) -> LayeredStore | None:
    """The near store with its remote, if one is configured; None without artifacts of other
    machines. Raises ProjectError."""
    setup = setup_of(workspace)
    if setup is None:
        if not (near.root / "signed").is_dir():
            return None
        signing = signing_key(read(user_folder() / USER_FILE, UserFile))
        return LayeredStore(near, None, policy_of(workspace, signing))
    memo = near.root / "remotes"
    far = None
    if setup.mode != "off":
        patience = _patience()
        far = Far(setup.named.address, _connecting(setup, patience), memo, patience)
    outbox = Outbox(near.root / "outbox") if setup.uploads and far else None
    return LayeredStore(near, far, setup.policy, outbox, setup.signing)


def finished(uploader: Uploader) -> list[str]:
    """Waits for the uploads, WAIT_S or NPUMAKE_CACHE_WAIT seconds; returns notes on their
    result."""
    left = uploader.finish(_seconds(WAIT_VARIABLE, WAIT_S))
    notes = [note for note in (uploader.far.note, uploader.note) if note]
    if left and not notes:
        notes.append(f"{left} to upload to {uploader.far.address}: npumake cache push, or later")
    return notes


def _patience() -> Patience:
    """NPUMAKE_CACHE_PATIENCE is the bound; the other limits scale with it."""
    bound = _seconds(PATIENCE_VARIABLE, PATIENCE.bound)
    share = bound / PATIENCE.bound
    return Patience(PATIENCE.connect * share, PATIENCE.stall * share, bound)


def _seconds(name: str, usual: float) -> float:
    text = os.environ.get(name, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ProjectError(
            f"`{text}` is not a number of seconds", name, f"{usual:g} is the default"
        )
    return seconds


def setup_of(workspace: Path) -> Setup | None:
    """The remote of the environment and the files; None without one. Raises ProjectError."""
    user = read(user_folder() / USER_FILE, UserFile)
    named = _named(workspace, user)
    if named is None:
        return None
    signing = signing_key(user)
    file = str(user_folder() / USER_FILE)
    hosts = {origin_of(url, file): host for url, host in user.cache.hosts.items()}
    host = hosts.get(named.address.origin)
    _seconds(WAIT_VARIABLE, WAIT_S)  # validated before anything is built
    return Setup(named, _mode(), host, policy_of(workspace, signing), signing)


# -- where -----------------------------------------------------------------------------------


def _named(workspace: Path, user: UserFile) -> NamedRemote | None:
    if url := os.environ.get(REMOTE):
        return NamedRemote(*parsed(url, REMOTE), by="environment")
    if REMOTE in os.environ:  # empty: no remote
        return None
    file = workspace / WORKSPACE_FILE
    if url := read(file, WorkspaceFile).cache.remote:
        address, inside = parsed(url, str(file))
        if inside != ANONYMOUS:
            hint = f"write it in {user_folder() / USER_FILE}, your own settings"
            raise ProjectError("a password in a project's file", str(file), hint)
        return NamedRemote(address, inside, by="workspace")
    if url := user.cache.remote:
        return NamedRemote(*parsed(url, str(user_folder() / USER_FILE)), by="user")
    return None


def _mode() -> Mode:
    mode = os.environ.get(MODE) or "write"
    if mode not in MODES:
        raise ProjectError(f"`{mode}` is not a mode of the remote cache", MODE, ", ".join(MODES))
    return cast(Mode, mode)


# -- what is sent there ----------------------------------------------------------------------


def _connecting(setup: Setup, patience: Patience) -> Callable[[], Transport]:
    def connect() -> Transport:
        return transport_to(setup.named.address, credentials(setup), patience)

    return connect


def credentials(setup: Setup) -> Credentials:
    """The credentials for the remote; none if only the project names it. Raises ProjectError if a
    secret cannot be read."""
    if not setup.allowed:
        return ANONYMOUS
    resolved = _of_host(setup.host) if setup.host else ANONYMOUS
    if setup.named.by == "environment":
        resolved = _of_environment(resolved)
    inside = setup.named.user
    if inside.user:
        resolved = replace(resolved, user=inside.user, password=inside.password, token="")
    return replace(resolved, cloud=True)


def _of_host(host: Host) -> Credentials:
    return Credentials(
        host.user or "",
        _secret(host.password, "password"),
        _secret(host.token, "token"),
        beside(host.certificate),
        beside(host.certificate_key),
        beside(host.authority),
    )


def _of_environment(base: Credentials) -> Credentials:
    variable = os.environ.get
    files = {field: Path(path) for field, name in CERTIFICATES.items() if (path := variable(name))}
    base = replace(base, **files)  # type: ignore[arg-type]
    if token := variable(TOKEN):
        return replace(base, token=token, user="", password="")
    if user := variable(USER):
        return replace(base, user=user, password=variable(PASSWORD, ""), token="")
    return base


def _secret(source: SecretSource | None, called: str) -> str:
    return "" if source is None else secret_of(source, called).read(f"the {called} of the cache")
