"""The transport of each URL scheme; a module is loaded when its scheme is used."""

from __future__ import annotations

from npumake.cache.remote.address import Address, Credentials
from npumake.cache.remote.transport import PATIENCE, Patience, Transport


def transport_to(
    address: Address, credentials: Credentials, patience: Patience = PATIENCE
) -> Transport:
    """The transport of the scheme. Raises ProjectError if its package is not installed."""
    if address.scheme == "file":
        from npumake.cache.remote.folder import FolderTransport  # noqa: PLC0415

        return FolderTransport(address)
    if address.scheme in ("http", "https"):
        from npumake.cache.remote.http import HttpTransport  # noqa: PLC0415

        return HttpTransport(address, credentials, patience)
    from npumake.cache.remote.cloud import CloudTransport  # noqa: PLC0415

    return CloudTransport(address, credentials, patience)
