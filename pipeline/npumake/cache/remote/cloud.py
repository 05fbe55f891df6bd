"""s3://, gs:// and az:// through obstore.

One native wheel covers all three, with streaming, multipart uploads and retries, and needs no other
package; fsspec would need a library per cloud, each with its own settings and an event loop. It is
optional: `npumake[remote]`.

The clouds' own variables (AWS_ENDPOINT_URL, AWS_REGION, …) apply. Their credentials are only looked
up if the user allows the bucket; otherwise requests are unsigned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from npumake.cache.remote.address import Address, Credentials
from npumake.cache.remote.transport import (
    CHUNK_BYTES,
    Body,
    Deadline,
    Patience,
    Readable,
    RemoteError,
)
from npumake.errors import ProjectError
from npumake.extras import install_line

PART_BYTES = 8 << 20  # of an upload; S3 takes 10,000 parts of at least 5 MiB
MAX_PARALLEL_PARTS = 4
WRITING_S = 60.0  # a cloud joins the parts before it responds
STORES = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore"}
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_ENDPOINT")


class CloudTransport:
    def __init__(self, address: Address, credentials: Credentials, patience: Patience) -> None:
        try:
            import obstore  # noqa: PLC0415  # optional
            import obstore.exceptions  # noqa: PLC0415
            import obstore.store  # noqa: PLC0415
        except ImportError:
            message = f"`{address.scheme}://` needs the package obstore"
            raise ProjectError(message, str(address), install_line("obstore")) from None
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
        response = self._do(lambda: self._calls.get(self._reader, name, options=options), deadline)
        if response is None:
            return None
        return Body(start, int(response.meta["size"]), self._chunks(response, deadline))

    def size(self, name: str, deadline: Deadline) -> int | None:
        metadata = self._do(lambda: self._calls.head(self._reader, name), deadline)
        return None if metadata is None else int(metadata["size"])

    def put(self, name: str, file: Readable, size: int, deadline: Deadline) -> None:
        part = max(PART_BYTES, -(-size // 10_000))
        result = self._do(
            lambda: self._calls.put(
                self._writer,
                name,
                file,
                chunk_size=part,
                max_concurrency=MAX_PARALLEL_PARTS,
                use_multipart=size > part,
            ),
            deadline,
        )
        if result is None:
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

    def _chunks(self, response: Any, deadline: Deadline) -> Iterator[bytes]:
        chunks = iter(response.stream(min_chunk_size=CHUNK_BYTES))
        while True:
            chunk = self._do(lambda: next(chunks, b""), deadline)
            if not chunk:
                return
            yield bytes(chunk)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
