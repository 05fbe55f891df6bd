"""Two machines that share a remote: each a near store of its own, a key, and a policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npumake.cache.local import LocalStore
from npumake.cache.remote.address import Credentials, parsed
from npumake.cache.remote.far import Far
from npumake.cache.remote.keys import Secret, SigningKey, generate
from npumake.cache.remote.layered import LayeredStore
from npumake.cache.remote.outbox import Outbox
from npumake.cache.remote.schemes import transport_to
from npumake.cache.remote.transport import Patience, Transport
from npumake.cache.remote.trust import Policy
from npumake.cache.store import Record
from npumake.digest import Json, of_document

QUICK = Patience(connect=1.0, stall=0.4, bound=1.0)
CALM = Patience(connect=10.0, stall=10.0, bound=60.0)


def signing(root: Path, name: str = "writer") -> SigningKey:
    file = root / f"{name}.key"
    if not file.exists():
        generate(file)
    return SigningKey(Secret(file=file))


def machine(
    root: Path,
    url: str,
    name: str,
    writer: SigningKey,
    credentials: Credentials | None = None,
    patience: Patience = CALM,
) -> LayeredStore:
    """One that reads what `writer` signed, and uploads as it."""
    near = LocalStore(root / name)
    address, inside = parsed(url, "test")
    sent = credentials or inside

    def connect() -> Transport:
        return transport_to(address, sent, patience)

    far = Far(address, connect, near.root / "remotes", patience)
    policy = Policy(lambda: {writer.public: "writer"})
    return LayeredStore(near, far, policy, Outbox(near.root / "outbox"), writer)


def document(name: str) -> Json:
    return {"stage": "quantized", "params": {"name": name}}


def keep(
    store: LayeredStore, root: Path, name: str, data: bytes, seconds: float | None = 60.0
) -> tuple[str, Record]:
    """As a build does: the artifact, then the record that names it."""
    path = root / f"artifact {name}"
    path.write_bytes(data)
    record = Record(document(name), store.put(path), len(data), seconds)
    key = of_document(record.document)
    store.remember(key, record)
    return key, record


def upload(store: LayeredStore, seconds: float = 60.0) -> str:
    """What a build does at its end: why not all was uploaded, or nothing."""
    uploader = store.uploader()
    assert uploader is not None
    uploader.finish(seconds)
    return uploader.note


def restored(store: LayeredStore, key: str, path: Path) -> bytes | None:
    """What a build gets for a key: the bytes, None where it has to make them."""
    record = store.recall(key)
    if record is None or not store.fetch(record.digest, path):
        assert not path.exists()
        return None
    return path.read_bytes()


@contextmanager
def folder(root: Path) -> Iterator[str]:
    (root / "share").mkdir(parents=True)
    yield f"file://{root}/share"
