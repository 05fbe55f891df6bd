"""How a long computation tells whoever watches how far it is, without knowing who that is.

`track` wraps an iterable; the value computed does not depend on anybody listening.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]  # (what is done, how many are done, of how many)

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Every `track` inside the block reports to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def track(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    listener = _listener.get()
    for done, item in enumerate(items):
        if listener:
            listener(what, done, total)
        yield item
    if listener:
        listener(what, total, total)
