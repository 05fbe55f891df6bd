"""Options for the keys of secure models."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.bundle.secure import Keys


def arguments(parser: argparse.ArgumentParser) -> None:
    options = {
        "--vendor-certificate": "runs only models signed under this vendor",
        "--encryption-key": "of a secure model that is encrypted",
        "--revocation-list": "the vendor's, X.509: a model of a revoked signer is refused",
    }
    for flag, help_text in options.items():
        parser.add_argument(flag, type=Path, metavar="FILE", help=help_text)


def keys_of(arguments: argparse.Namespace) -> Keys | None:
    """The keys; None without such options. Raises ProjectError."""
    if arguments.vendor_certificate:
        from npumake.bundle.secure import Keys  # imports the cryptography

        files = (arguments.vendor_certificate, arguments.encryption_key, arguments.revocation_list)
        return Keys.read(*files)
    alone = {
        "--encryption-key": (arguments.encryption_key, "an encryption key"),
        "--revocation-list": (arguments.revocation_list, "a list of revoked certificates"),
    }
    for flag, (file, called) in alone.items():
        if file:
            message = f"{called} alone: it does not identify the model's author"
            raise ProjectError(message, flag, "give --vendor-certificate, too")
    return None
