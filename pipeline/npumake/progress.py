"""How a long computation tells whoever watches how far it is, without knowing who that is.

`track` wraps an iterable, `tell` says a sentence; the value computed does not depend on anybody
listening.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]  # (what is done, how many are done, of how many)

MessageHandler = Callable[[str], None]

_message_handler: ContextVar[MessageHandler | None] = ContextVar("message_handler", default=None)
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


def report(what: str, done: int, total: int) -> None:
    """One step of what is no iterable."""
    if listener := _listener.get():
        listener(what, done, total)


@contextmanager
def hearing(handler: MessageHandler) -> Iterator[None]:
    """Every `tell` inside the block reports to `handler`."""
    token = _message_handler.set(handler)
    try:
        yield
    finally:
        _message_handler.reset(token)


def tell(sentence: str) -> None:
    """What a person should know though nothing fails for it."""
    if handler := _message_handler.get():
        handler(sentence)
