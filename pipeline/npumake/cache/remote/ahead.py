"""Prefetched downloads, so that a build copies what has arrived while the
rest arrives."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

THREADS = 8


class Ahead:
    """`bring` fetches one artifact by its digest. A build that ends does not wait for the threads:
    the next one continues their downloads."""

    def __init__(self, bring: Callable[[str], bool]) -> None:
        self._bring = bring
        self._begun: dict[str, Future[bool]] = {}
        self._waiting: deque[tuple[str, Future[bool]]] = deque()
        self._running = 0
        self._lock = threading.Lock()

    def begin(self, digest: str) -> None:
        with self._lock:
            if digest in self._begun:
                return
            future: Future[bool] = Future()
            self._begun[digest] = future
            self._waiting.append((digest, future))
            if self._running == THREADS:
                return
            self._running += 1
        threading.Thread(target=self._work, daemon=True).start()

    def result(self, digest: str) -> bool | None:
        """Waits for a prefetched download; None for another digest, and at a second call."""
        with self._lock:
            future = self._begun.pop(digest, None)
        return None if future is None else future.result()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                digest, future = self._waiting.popleft()
            try:
                future.set_result(self._bring(digest))
            except Exception as error:  # noqa: BLE001  # raised by `result`
                future.set_exception(error)
