"""Builds that share what they make: what a clean machine gets, and what a remote cannot do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from forks import run_python, user_environment
from remote_servers import FAULTS, Faulty, faulty
from workspaces import REPO, Workspace, copied, few, lay_out, made

TOKEN = "the-token-of-the-user"
# Seconds that no machine takes, however busy; of a remote that never answers, few.
CALM = {"NPUMAKE_CACHE_PATIENCE": "200", "NPUMAKE_CACHE_WAIT": "200"}
QUICK = {"NPUMAKE_CACHE_PATIENCE": "2"}
UNLOADED = ("npumake.cache.remote.far", "http.client", "ssl", "cryptography", "obstore", "yaml")


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty() as found:
        yield found


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    return new_user(tmp_path)


def new_user(root: Path) -> dict[str, str]:
    """The environment of a user who has a signing key."""
    found = {"XDG_CONFIG_HOME": str(root / "config"), **CALM}
    npumake(root, found, "cache", "keygen")
    return found


def npumake(
    here: Path, environment: Mapping[str, str], *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    run = run_python(
        *("-m", "npumake.cli.main", *arguments),
        folder=here,
        environment={**without_remote(), **environment},
    )
    if check:
        run.check_returncode()
    return run


def without_remote() -> dict[str, str]:
    clean = user_environment()
    clean.pop("NPUMAKE_CACHE_REMOTE", None)
    return clean


def clean_machine(built: Workspace, root: Path) -> Workspace:
    """The same project where nothing is built."""
    return lay_out(root, built.name)


def share(built: Workspace, environment: Mapping[str, str], root: Path) -> Workspace:
    """A machine that builds the project and uploads all of it."""
    here = clean_machine(built, root)
    run = npumake(here.root, environment, "build")
    assert "note: the remote" not in run.stdout
    assert "note: nothing more" not in run.stdout
    return here


class Stock(NamedTuple):
    """What a machine has uploaded, the user whose key signed it, and the machine."""

    blobs: Mapping[str, bytes]
    user: dict[str, str]
    machine: Workspace


@pytest.fixture(scope="module")
def stock(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Stock:
    root = tmp_path_factory.mktemp("stock")
    user = new_user(root)
    with faulty() as server:
        environment = {**user, "NPUMAKE_CACHE_REMOTE": server.url}
        return Stock(server.blobs, user, share(built_once, environment, root / "w"))


@pytest.mark.slow
def test_a_clean_machine_restores_without_running_a_stage(
    built_once: Workspace, server: Faulty, stock: Stock, tmp_path: Path
) -> None:
    server.blobs = {**stock.blobs}
    environment = {**stock.user, "NPUMAKE_CACHE_REMOTE": server.url}
    there = clean_machine(built_once, tmp_path / "b")
    run = npumake(there.root, environment, "build", "-n", "2")
    assert made(run, "made") == set()
    assert len(made(run, "recalled")) >= 14
    assert there.digests() == built_once.digests()


def test_a_project_that_is_current_asks_nothing_and_loads_nothing(
    server: Faulty, stock: Stock, tmp_path: Path
) -> None:
    here, user = copied(stock.machine, tmp_path / "w"), stock.user
    here.root.joinpath("npumake.yaml").write_text(f"cache: {{remote: {server.url}}}\n")
    code = (
        "import sys; from npumake.cli.main import main; assert main(['build']) == 0;"
        f"print('loaded', [m for m in {UNLOADED} if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=here.root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO / "pipeline"), **user},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines()[-1] == "loaded []"
    assert server.seen == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ac/", "cas/"])
@pytest.mark.parametrize("fault", few(FAULTS, lambda fault: fault in ("stalls", "flips a bit")))
def test_a_build_with_a_faulty_remote_is_one_without(
    built_once: Workspace,
    server: Faulty,
    stock: Stock,
    tmp_path: Path,
    fault: str,
    kind: str,
) -> None:
    server.blobs = {**stock.blobs}
    environment = {**stock.user, **QUICK, "NPUMAKE_CACHE_REMOTE": server.url}
    server.fault, server.applies = fault, lambda name: name.startswith(kind)
    there = clean_machine(built_once, tmp_path / "b")
    run = npumake(there.root, environment, "build")
    assert run.returncode == 0
    assert there.digests() == built_once.digests()
    notes = [line for line in run.stdout.splitlines() if "is not used" in line]
    assert len(notes) <= 1


# -- what is sent, and to whom -----------------------------------------------------------------

SECRETS = {
    "NPUMAKE_CACHE_TOKEN": TOKEN,
    "NPUMAKE_CACHE_USER": "me",
    "NPUMAKE_CACHE_PASSWORD": "the-password",
    "AWS_ACCESS_KEY_ID": "AKIAUSER",
    "AWS_SECRET_ACCESS_KEY": "the-cloud-secret",
}
# Origins that a user allows, none of which is that of the project's remote at http://HOST:PORT.
OTHERS = {
    "https": "https://127.0.0.1:{port}",
    "another port": "http://127.0.0.1:9",
    "no port": "http://127.0.0.1",
    "another name": "http://localhost:{port}",
    "a longer name": "http://127.0.0.1.example.com:{port}",
}


def allow(user: Mapping[str, str], origin: str) -> None:
    folder = Path(user["XDG_CONFIG_HOME"], "npumake")
    (folder / "token").write_text(f"{TOKEN}\n")
    text = f"cache:\n  hosts:\n    {origin}:\n      token: {{file: token}}\n"
    (folder / "config.yaml").write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_no_credential_reaches_a_remote_that_only_the_project_names(
    fresh: Workspace, server: Faulty, user: dict[str, str], other: str
) -> None:
    port = server.url.rpartition(":")[2]
    allow(user, OTHERS[other].format(port=port))
    fresh.root.joinpath("npumake.yaml").write_text(f"cache: {{remote: {server.url}}}\n")
    npumake(fresh.root, {**user, **SECRETS}, "build", "digits:original_float")
    assert server.asked("GET") != []
    assert server.asked("PUT") == []
    arrived = {name.lower() for _, _, headers in server.seen for name in headers}
    assert arrived == {"host", "accept-encoding", "user-agent"}


def test_a_bucket_that_only_the_project_names_is_read_unsigned(
    fresh: Workspace, server: Faulty, user: dict[str, str]
) -> None:
    pytest.importorskip("obstore")
    fresh.root.joinpath("npumake.yaml").write_text("cache: {remote: s3://bucket/prefix}\n")
    endpoint = {"AWS_ENDPOINT_URL": server.url}
    npumake(fresh.root, {**user, **SECRETS, **endpoint}, "build", "digits:original_float")
    assert server.asked("GET") != []
    assert server.asked("PUT") == []
    text = repr(server.seen)
    assert not any(secret in text for secret in SECRETS.values() if len(secret) > 2)
    assert "authorization" not in text.lower()


def test_what_the_user_allows_is_sent(
    fresh: Workspace, server: Faulty, user: dict[str, str]
) -> None:
    allow(user, server.url)
    fresh.root.joinpath("npumake.yaml").write_text(f"cache: {{remote: {server.url}}}\n")
    npumake(fresh.root, user, "build", "digits:original_float")
    assert server.asked("PUT") != []
    assert {headers["Authorization"] for _, _, headers in server.seen} == {f"Bearer {TOKEN}"}


def test_a_redirect_takes_no_credential_along(
    fresh: Workspace, server: Faulty, user: dict[str, str]
) -> None:
    with faulty() as elsewhere:
        allow(user, server.url)
        server.fault = "redirects"
        fresh.root.joinpath("npumake.yaml").write_text(f"cache: {{remote: {server.url}}}\n")
        run = npumake(fresh.root, user, "build", "digits:original_float")
        assert elsewhere.seen == []
    assert "a redirect is not followed" in run.stdout


def test_a_password_in_a_projects_file_is_refused(fresh: Workspace, user: dict[str, str]) -> None:
    text = "cache: {remote: 'https://me:secret@example.com'}\n"
    fresh.root.joinpath("npumake.yaml").write_text(text)
    run = npumake(fresh.root, user, "build", "digits:original_float", check=False)
    assert run.returncode == 2
    assert "a password in a project's file" in run.stdout + run.stderr
    assert "secret" not in run.stdout + run.stderr


# -- modes and reasons -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "reads", "writes"), [("read", 1, 0), ("write", 1, 1), ("off", 0, 0)]
)
def test_a_mode_says_what_the_remote_is_for(
    fresh: Workspace, server: Faulty, user: dict[str, str], mode: str, reads: int, writes: int
) -> None:
    environment = {**user, "NPUMAKE_CACHE_REMOTE": server.url}
    npumake(fresh.root, environment, "build", "--remote", mode, "digits:original_float")
    assert (bool(server.asked("GET")), bool(server.asked("PUT"))) == (bool(reads), bool(writes))


def test_without_a_key_a_build_only_reads(fresh: Workspace, server: Faulty, tmp_path: Path) -> None:
    environment = {
        "XDG_CONFIG_HOME": str(tmp_path / "nobody"),
        "NPUMAKE_CACHE_REMOTE": server.url,
    }
    npumake(fresh.root, environment, "build", "digits:original_float")
    assert server.asked("GET") != []
    assert server.asked("PUT") == []


@pytest.mark.slow
def test_why_says_whose_record_is_not_read(
    built_once: Workspace, server: Faulty, stock: Stock, tmp_path: Path
) -> None:
    server.blobs = {**stock.blobs}
    environment = {**stock.user, "NPUMAKE_CACHE_REMOTE": server.url}
    there = clean_machine(built_once, tmp_path / "b")
    told = npumake(there.root, environment, "why", "--remote").stdout
    assert told.count("signed by this machine") >= 14
    there.root.joinpath("trust.yaml").write_text("read: {}\n")
    told = npumake(there.root, environment, "why", "--remote").stdout
    assert "a key that trust.yaml lacks" in told
    server.blobs.clear()
    told = npumake(there.root, environment, "why", "--remote").stdout
    assert "it has no record of this key" in told


def test_why_remote_without_a_remote_says_how_to_name_one(
    fresh: Workspace, user: dict[str, str]
) -> None:
    run = npumake(fresh.root, user, "why", "--remote", check=False)
    assert run.returncode == 2
    assert "no remote cache is configured" in run.stderr


@pytest.mark.slow
def test_push_uploads_what_a_build_could_not(
    fresh: Workspace, server: Faulty, user: dict[str, str]
) -> None:
    dead = {**user, "NPUMAKE_CACHE_REMOTE": "http://127.0.0.1:9"}
    told = npumake(fresh.root, dead, "build", "digits:original_float").stdout
    assert told.count("connection refused") == 1
    assert npumake(fresh.root, dead, "cache", "push", check=False).returncode == 5
    alive = {**user, "NPUMAKE_CACHE_REMOTE": server.url}
    assert "1 uploaded" in npumake(fresh.root, alive, "cache", "push").stdout
    assert sorted(name.partition("/")[0] for name in server.blobs) == ["ac", "cas"]
    server.blobs.clear()
    assert "0 uploaded" in npumake(fresh.root, alive, "cache", "push").stdout
    assert "1 uploaded" in npumake(fresh.root, alive, "cache", "push", "--all").stdout
    assert len(server.blobs) == 2


def test_push_without_a_key_says_how_to_make_one(
    fresh: Workspace, server: Faulty, tmp_path: Path
) -> None:
    nobody = {"XDG_CONFIG_HOME": str(tmp_path / "x"), "NPUMAKE_CACHE_REMOTE": server.url}
    run = npumake(fresh.root, nobody, "cache", "push", check=False)
    assert run.returncode == 2
    assert "npumake cache keygen" in run.stderr
