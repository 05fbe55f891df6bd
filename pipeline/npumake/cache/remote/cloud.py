"""s3://, gs:// and az:// through obstore.

One wheel of native code speaks all three, with streaming, multipart uploads and retries, and needs
no other package; fsspec would need a library per cloud, each with its own settings and an event
loop. It is optional: `npumake[remote]`.

The clouds' own variables (AWS_ENDPOINT_URL, AWS_REGION, …) are the user's and are obeyed. Their
credentials are looked up only where the user allows the bucket; otherwise requests are unsigned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from npumake.cache.remote.address import Address, Credentials
from npumake.cache.remote.transport import (
    CHUNK,
    Body,
    Deadline,
    Patience,
    Readable,
    RemoteError,
)
from npumake.errors import ProjectError
from npumake.extras import install_line

PART = 8 << 20  # bytes of one part of an upload; S3 wants 5 MiB at least and 10,000 parts at most
PARTS_AT_ONCE = 4
WRITING_S = 60.0  # a cloud puts the parts together before it answers
STORES = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore"}
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_ENDPOINT")


class CloudTransport:
    def __init__(self, address: Address, credentials: Credentials, patience: Patience) -> None:
        try:
            import obstore  # noqa: PLC0415  # optional
            import obstore.exceptions  # noqa: PLC0415
            import obstore.store  # noqa: PLC0415
        except ImportError:
            what = f"`{address.scheme}://` needs the package obstore"
            raise ProjectError(what, str(address), install_line("obstore")) from None
        self._calls = obstore
        self._errors = obstore.exceptions
        self._kind = getattr(obstore.store, STORES[address.scheme])
        self._address, self._credentials = address, credentials
        self._reader = self._opened(patience.connect, patience.stall)
        self._writer = self._opened(patience.connect, max(WRITING_S, patience.stall))

    def _opened(self, connect: float, stall: float) -> Any:
        options: dict[str, Any] = {
            "connect_timeout": timedelta(seconds=connect),
            "read_timeout": timedelta(seconds=stall),
            "timeout": timedelta(hours=24),
            "allow_http": any(os.environ.get(name, "").startswith("http:") for name in ENDPOINTS),
        }
        return self._kind(
            self._address.host,
            prefix=self._address.path or None,
            client_options=options,
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=stall)},
            **({} if self._credentials.cloud else {"skip_signature": True}),
        )

    def get(self, name: str, deadline: Deadline, start: int = 0) -> Body | None:
        options = {"range": {"offset": start}} if start else {}
        found = self._do(lambda: self._calls.get(self._reader, name, options=options), deadline)
        if found is None:
            return None
        return Body(start, int(found.meta["size"]), self._chunks(found, deadline))

    def size(self, name: str, deadline: Deadline) -> int | None:
        found = self._do(lambda: self._calls.head(self._reader, name), deadline)
        return None if found is None else int(found["size"])

    def put(self, name: str, file: Readable, size: int, deadline: Deadline) -> None:
        part = max(PART, -(-size // 10_000))
        done = self._do(
            lambda: self._calls.put(
                self._writer,
                name,
                file,
                chunk_size=part,
                max_concurrency=PARTS_AT_ONCE,
                use_multipart=size > part,
            ),
            deadline,
        )
        if done is None:
            raise RemoteError(f"no bucket {self._address.origin}, or it forgot a part")

    def _do(self, call: Any, deadline: Deadline) -> Any:
        deadline.left(0)
        try:
            return call()
        except (self._errors.NotFoundError, FileNotFoundError):
            return None
        except (self._errors.PermissionDeniedError, self._errors.UnauthenticatedError):
            how = "our credentials" if self._credentials.cloud else "a request without credentials"
            raise RemoteError(f"it refuses {how}", lasting=True) from None
        except (self._errors.BaseError, OSError, ValueError) as error:
            raise RemoteError(_first_line(error)) from None

    def _chunks(self, found: Any, deadline: Deadline) -> Iterator[bytes]:
        chunks = iter(found.stream(min_chunk_size=CHUNK))
        while True:
            chunk = self._do(lambda: next(chunks, b""), deadline)
            if not chunk:
                return
            yield bytes(chunk)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
