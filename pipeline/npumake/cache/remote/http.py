"""http(s):// in the plain protocol of bazel-remote: GET, HEAD and PUT of /cas/… and /ac/….

Any server that stores a path works: bazel-remote, nginx with WebDAV. Redirects are not followed:
they would lead to an origin that the user has not allowed.
"""

from __future__ import annotations

import base64
import http.client
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from npumake.cache.remote.address import Address, Credentials
from npumake.cache.remote.connections import CONNECTION_ERRORS, Connection, Connections, broken
from npumake.cache.remote.transport import (
    CHUNK_BYTES,
    Body,
    Deadline,
    Patience,
    Readable,
    RemoteError,
)

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
ABSENT = frozenset({404, 410})
UNSATISFIABLE = 416
MAX_RETRY_AFTER_S = 5.0  # longest Retry-After that is obeyed


class HttpTransport:
    def __init__(self, address: Address, credentials: Credentials, patience: Patience) -> None:
        self._path = "".join(f"/{part}" for part in address.path.split("/") if part)
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "npumake"}
        self._headers |= _authorization(credentials)
        self._connections = Connections(address, credentials, patience)

    def get(self, name: str, deadline: Deadline, start: int = 0) -> Body | None:
        answer = self._ask("GET", name, deadline, {"Range": f"bytes={start}-"} if start else {})
        if answer.status in ABSENT:
            answer.end()
            return None
        if answer.status == UNSATISFIABLE:  # our bytes are not the start of it
            answer.end()
            return self.get(name, deadline)
        if answer.status != http.client.PARTIAL_CONTENT:
            return Body(0, answer.response.length, answer.chunks(), answer.abandon)
        try:
            size = _whole(answer.response.getheader("Content-Range", ""), start)
        except RemoteError:
            answer.abandon()
            raise
        return Body(start, size, answer.chunks(), answer.abandon)

    def size(self, name: str, deadline: Deadline) -> int | None:
        answer = self._ask("HEAD", name, deadline, {})
        length = answer.response.getheader("Content-Length", "")
        answer.end()
        if answer.status in ABSENT:
            return None
        size = _number(length)
        return -1 if size is None else size  # not the size of any blob

    def put(self, name: str, file: Readable, size: int, deadline: Deadline) -> None:
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        answer = self._ask("PUT", name, deadline, headers, _Upload(file, size))
        answer.end()
        if answer.status in ABSENT:
            raise RemoteError(f"it takes no uploads: {_reason(answer.status)}", lasting=True)

    def _ask(
        self,
        verb: str,
        name: str,
        deadline: Deadline,
        headers: Mapping[str, str],
        body: _Upload | None = None,
    ) -> _Answer:
        """The response to a request. Raises RemoteError for a status other than success or
        absence."""
        path = quote(f"{self._path}/{name}", safe="/%")  # the URL is percent-encoded already
        while True:
            connection, was_used = self._connections.take(deadline)
            answer = _Answer(self._connections, connection, deadline)
            try:
                if body is not None:
                    body.begin(answer.hurry)
                connection.request(verb, path, body, {**self._headers, **headers})
                answer.receive()
            except CONNECTION_ERRORS as error:
                answer.abandon()
                if was_used and isinstance(error, ConnectionError):
                    continue  # closed while idle
                raise broken(error) from None
            except RemoteError:
                answer.abandon()
                raise
            if answer.status // 100 == 2 or answer.status in (*ABSENT, UNSATISFIABLE):
                return answer
            answer.end()
            raise _refusal(answer.response)


class _Answer:
    """A response. Its connection returns to the pool once it is read to its end, else it is
    closed."""

    def __init__(
        self, connections: Connections, connection: Connection, deadline: Deadline
    ) -> None:
        self._connections, self._connection = connections, connection
        self._deadline = deadline
        self._is_over = False
        self.status = 0

    def receive(self) -> None:
        self.hurry()
        self.response = self._connection.getresponse()
        self.status = self.response.status

    def hurry(self) -> None:
        self._connections.hurry(self._connection, self._deadline)

    def chunks(self) -> Iterator[bytes]:
        try:
            while not self.response.isclosed():
                self.hurry()
                if chunk := self.response.read1(CHUNK_BYTES):
                    yield chunk
                elif self.response.length:  # http.client does not report an early end
                    raise RemoteError("the response ended early")
                else:
                    break
            self._give_back()
        except CONNECTION_ERRORS as error:
            raise broken(error) from None
        finally:
            self.abandon()

    def end(self) -> None:
        """Reads the end of a short response; after a long one the connection is closed."""
        try:
            self.hurry()
            self.response.read(CHUNK_BYTES)
        except (*CONNECTION_ERRORS, RemoteError):
            self.abandon()
        if self.response.isclosed():
            self._give_back()
        self.abandon()

    def abandon(self) -> None:
        """Closes a connection that was not returned."""
        if not self._is_over:
            self._is_over = True
            self._connection.close()
            if self.status:
                self.response.close()

    def _give_back(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.response.close()
            self._connections.give(self._connection)


@dataclass
class _Upload:
    """`size` bytes of a file as a body for http.client; each piece renews the time limit."""

    file: Readable
    size: int

    def __post_init__(self) -> None:
        self._start = self.file.tell()

    def begin(self, hurry: Callable[[], None]) -> None:
        self.file.seek(self._start)
        self._left, self._hurry = self.size, hurry

    def read(self, max_bytes: int = CHUNK_BYTES) -> bytes:
        self._hurry()
        chunk = self.file.read(min(max_bytes, self._left))
        self._left -= len(chunk)
        return chunk


def _authorization(credentials: Credentials) -> dict[str, str]:
    """Raises RemoteError for a token with characters that a header cannot hold."""
    if credentials.token:
        if not re.fullmatch(r"[!-~]+", credentials.token):
            raise RemoteError("the token has a character that no header holds", lasting=True)
        return {"Authorization": f"Bearer {credentials.token}"}
    if credentials.user:
        pair = f"{credentials.user}:{credentials.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def _refusal(response: http.client.HTTPResponse) -> RemoteError:
    status = response.status
    reason = _reason(status)
    if status in TRANSIENT:
        wait = _number(response.getheader("Retry-After", "")) or 0
        return RemoteError(reason, wait=min(float(wait), MAX_RETRY_AFTER_S))
    if status // 100 == 3:
        return RemoteError(f"{reason}: a redirect is not followed", lasting=True)
    return RemoteError(reason, lasting=True)


def _reason(status: int) -> str:
    return f"{status} {http.client.responses.get(status, '')}".strip()


def _whole(content_range: str, start: int) -> int | None:
    """The size in `bytes 5-9/10`. Raises RemoteError if that starts elsewhere."""
    unit, _, rest = content_range.partition(" ")
    span, _, whole = rest.partition("/")
    if unit != "bytes" or span.partition("-")[0] != str(start):
        raise RemoteError("it sends another range than the one requested")
    return _number(whole)


def _number(text: str) -> int | None:
    """A whole number below 10**18 in a header; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
