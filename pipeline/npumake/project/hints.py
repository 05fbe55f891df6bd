"""The types of a class's fields by name, cached per class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints


def hints_of(kind: Any, with_docs: bool = False) -> Mapping[str, Any]:
    """The types; `with_docs` keeps their Annotated form."""
    return _hints(kind, with_docs)


@cache
def _hints(kind: Any, with_docs: bool) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=with_docs)
