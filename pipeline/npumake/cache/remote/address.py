"""A remote's URL, and the credentials for it.

    http://host:port/path      the plain protocol of bazel-remote; a path is an instance name
    s3://bucket/prefix         gs:// and az:// likewise
    file:///folder

Credentials belong to an origin: scheme, host and port. They are sent to no other one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from npumake.errors import ProjectError

PORTS = {"http": 80, "https": 443}
CLOUDS = ("s3", "gs", "az")
SCHEMES = (*PORTS, *CLOUDS, "file")


@dataclass(frozen=True)
class Credentials:
    """Credentials for one origin. `cloud` allows the cloud's own, from the environment."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    certificate: Path | None = None  # PEM, the client's
    certificate_key: Path | None = None
    authority: Path | None = None  # PEM, trusted authorities; the system's by default
    cloud: bool = False


ANONYMOUS = Credentials()


@dataclass(frozen=True)
class Address:
    """`host` is the bucket of a cloud; `path` has no slash at either end, except in file:///."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """`https://cache.example.com`, without the default port. Each folder is its own origin."""
        if self.scheme == "file":
            return f"file://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port in (0, PORTS.get(self.scheme))
        return f"{self.scheme}://{host}" + ("" if usual else f":{self.port}")

    def __str__(self) -> str:
        path = "" if self.scheme == "file" else f"/{self.path}"
        return f"{self.origin}{path}".rstrip("/")


def parsed(url: str, where: str) -> tuple[Address, Credentials]:
    """The address, and the user and password in the URL. Raises ProjectError at `where`."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise ProjectError(f"`{url}` is not a URL: {error}", where) from None
    if parts.scheme not in SCHEMES:
        hint = "a remote is " + ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ProjectError(f"`{parts.scheme}` is not a scheme of a remote cache", where, hint)
    host = parts.hostname or ""
    if parts.query or parts.fragment or any(char.isspace() for char in url):
        raise ProjectError("the URL of a remote has no query, fragment or space", where)
    if parts.scheme == "file":
        if host not in ("", "localhost") or not parts.path.startswith("/"):
            raise ProjectError("not an absolute folder", where, "write file:///folder")
        return Address("file", "", 0, unquote(parts.path).rstrip("/")), ANONYMOUS
    if not host:
        raise ProjectError(f"`{parts.scheme}://` without a host or bucket", where)
    address = Address(parts.scheme, host, port, parts.path.strip("/"))
    user = Credentials(unquote(parts.username or ""), unquote(parts.password or ""))
    return address, user


def origin_of(url: str, where: str) -> str:
    """The origin that credentials are configured for. Raises ProjectError."""
    address, user = parsed(url, where)
    if user != ANONYMOUS:
        raise ProjectError("a password in an origin", where, "write it below, as `password`")
    return address.origin
