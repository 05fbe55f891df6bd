"""Pins: names for artifacts that a sweep keeps. pins/<name>.json in the store, sealed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from npumake.cache.publish import replacing
from npumake.cache.sealed import sealed, unsealed
from npumake.errors import CacheError, ProjectError, did_you_mean

_NAME = re.compile(r"\w[\w.+-]{0,99}", re.ASCII)


def pin(root: Path, name: str, keys: Mapping[str, str]) -> None:
    """Pins the artifacts of `keys`, with the names of their nodes, in place of an earlier pin of
    that name. Raises ProjectError for a bad name."""
    with replacing(_file(root, name)) as temporary:
        temporary.write_bytes(sealed(_identity(name), dict(keys)))


def unpin(root: Path, name: str) -> None:
    """Raises ProjectError if there is no pin of that name."""
    try:
        _file(root, name).unlink()
    except FileNotFoundError:
        hint = did_you_mean(name, pin_names(root)) if pin_names(root) else "there are none"
        raise ProjectError(f"no pin `{name}`", hint=hint) from None
    except OSError as error:
        raise CacheError(f"cannot remove the pin `{name}`: {error.strerror}") from None


def pin_names(root: Path) -> list[str]:
    try:
        names = os.listdir(root / "pins")
    except OSError:
        return []
    return sorted(
        stem
        for name in names
        if name.endswith(".json") and _NAME.fullmatch(stem := name.removesuffix(".json"))
    )


def pinned(root: Path, name: str) -> Mapping[str, str]:
    """The nodes of a pin by key. Raises CacheError for a damaged one: it is unknown what it
    keeps."""
    try:
        keys = unsealed(_identity(name), _file(root, name).read_bytes())
    except OSError as error:
        raise CacheError(f"cannot read the pin `{name}`: {error.strerror}") from None
    if not isinstance(keys, dict):
        hint = f"npumake cache unpin {name}, and pin it again"
        raise CacheError(f"the pin `{name}` is damaged", hint=hint)
    return {str(key): str(node) for key, node in keys.items()}


def _file(root: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        hint = "letters, digits, and . _ + - behind the first"
        raise ProjectError(f"`{name[:100]}` cannot name a pin", hint=hint)
    return root / "pins" / f"{name}.json"


def _identity(name: str) -> str:
    return f"pin {name}"
