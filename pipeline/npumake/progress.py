"""Progress of a long computation, reported to an optional listener.

`track` wraps an iterable, `tell` reports a note. No computed value depends on a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]  # (name, number done, total)

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


def track(items: Iterable[T], task: str, total: int) -> Iterator[T]:
    listener = _listener.get()
    for completed, item in enumerate(items):
        if listener:
            listener(task, completed, total)
        yield item
    if listener:
        listener(task, total, total)


def report(task: str, completed: int, total: int) -> None:
    """Reports one step of a computation without an iterable."""
    if listener := _listener.get():
        listener(task, completed, total)


@contextmanager
def hearing(handler: MessageHandler) -> Iterator[None]:
    """Every `tell` inside the block reports to `handler`."""
    token = _message_handler.set(handler)
    try:
        yield
    finally:
        _message_handler.reset(token)


def tell(sentence: str) -> None:
    """Reports a note for the user; it is not an error."""
    if handler := _message_handler.get():
        handler(sentence)
