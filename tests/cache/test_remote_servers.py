"""What one machine makes, another one gets: over every kind of server that is installed here."""

import hashlib
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from certificates import issued, pem
from npumake.cache.remote.address import Credentials
from npumake.digest import of_bytes
from remote_servers import bazel_remote, moto, nginx
from remote_stores import folder, keep, machine, restored, signing, upload

Server = Callable[[Path, pytest.MonkeyPatch], AbstractContextManager[tuple[str, Credentials]]]
CLOUD = Credentials(cloud=True)


@contextmanager
def plain(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    with nginx(root) as url:
        yield url, Credentials()


@contextmanager
def instance(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    with nginx(root) as url:
        yield f"{url}/team/models", Credentials()


@contextmanager
def password(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    root.mkdir()
    command = ["openssl", "passwd", "-apr1", "a pass:word"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    (root / "users").write_text(f"me:{run.stdout}")
    with nginx(root, f'auth_basic "x"; auth_basic_user_file {root}/users;') as url:
        yield url.replace("://", "://me:a%20pass%3Aword@"), Credentials("me", "a pass:word")


@contextmanager
def bearer(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    rule = 'if ($http_authorization != "Bearer the-token") { return 401; }'
    with nginx(root, rule) as url:
        yield url, Credentials(token="the-token")


@contextmanager
def mutual(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    root.mkdir()
    files = tls_files(root)
    said = {
        "ssl_certificate": "server.pem",
        "ssl_certificate_key": "server.key",
        "ssl_client_certificate": "authority.pem",
    }
    lines = "; ".join(f"{name} {root}/{file}" for name, file in said.items())
    with nginx(root, tls=f"{lines}; ssl_verify_client on;") as url:
        yield (
            url,
            Credentials(
                certificate=files / "client.pem",
                certificate_key=files / "client.key",
                authority=files / "authority.pem",
            ),
        )


@contextmanager
def shared(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    with folder(root) as url:
        yield url, Credentials()


@contextmanager
def bazel(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    with bazel_remote(root) as url:
        yield url, Credentials()


@contextmanager
def bucket(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Credentials]]:
    with moto(patch) as url:
        yield url, CLOUD


def tls_files(root: Path) -> Path:
    """PEM files of an authority, a server at 127.0.0.1 and a client."""
    from ipaddress import ip_address

    from cryptography import x509

    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    is_ca = x509.BasicConstraints(ca=True, path_length=None)
    authority = issued("authority", more=((is_ca, True),))
    for name, identity in {
        "authority": authority,
        "server": issued("server", authority, "server", more=((here, False),)),
        "client": issued("client", authority, "client"),
    }.items():
        (root / f"{name}.pem").write_bytes(pem(identity.certificate))
        (root / f"{name}.key").write_bytes(pem(identity.key))
    return root


SERVERS: dict[str, Server] = {
    "folder": shared,
    "nginx": plain,
    "nginx, instance": instance,
    "nginx, password": password,
    "nginx, token": bearer,
    "nginx, certificates": mutual,
    "bazel-remote": bazel,
    "moto": bucket,
}
Remote = tuple[str, Credentials]


@pytest.fixture(params=SERVERS)
def remote(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Remote]:
    with SERVERS[request.param](tmp_path / "server", monkeypatch) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 3 << 20, 20 << 20])
def test_what_one_machine_uploads_another_one_gets(
    remote: Remote, tmp_path: Path, size: int
) -> None:
    url, credentials = remote
    data = hashlib.shake_256(str(size).encode()).digest(size)
    key = signing(tmp_path)
    here = machine(tmp_path, url, "here", key, credentials)
    name, record = keep(here, tmp_path, "a", data)
    assert upload(here) == ""
    there = machine(tmp_path, url, "there", key, credentials)
    assert restored(there, name, tmp_path / "copy") == data
    assert there.near.has(record.digest)
    assert there.note == ""


def test_what_a_remote_lacks_is_absent_and_no_failure(remote: Remote, tmp_path: Path) -> None:
    url, credentials = remote
    there = machine(tmp_path, url, "there", signing(tmp_path), credentials)
    assert there.recall(of_bytes(b"absent")) is None
    assert there.note == ""


def test_a_download_goes_on_where_another_one_ended(remote: Remote, tmp_path: Path) -> None:
    url, credentials = remote
    data = hashlib.shake_256(b"resumed").digest(5 << 20)
    key = signing(tmp_path)
    here = machine(tmp_path, url, "here", key, credentials)
    name, record = keep(here, tmp_path, "a", data)
    assert upload(here) == ""
    there = machine(tmp_path, url, "there", key, credentials)
    part = there.near.root / "partial" / record.digest
    part.parent.mkdir(parents=True)
    part.write_bytes(data[: 3 << 20])
    assert restored(there, name, tmp_path / "copy") == data
    assert not part.exists()


@pytest.mark.slow
def test_many_artifacts_are_uploaded_each_once(remote: Remote, tmp_path: Path) -> None:
    url, credentials = remote
    key = signing(tmp_path)
    here = machine(tmp_path, url, "here", key, credentials)
    kept = {str(n): keep(here, tmp_path, str(n), bytes([n]) * 70_000)[0] for n in range(12)}
    assert upload(here) == ""
    assert here.outbox is not None
    assert here.outbox.keys() == []
    there = machine(tmp_path, url, "there", key, credentials)
    for number, name in kept.items():
        path = tmp_path / f"copy {number}"
        assert restored(there, name, path) == bytes([int(number)]) * 70_000
