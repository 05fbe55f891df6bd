"""The ledger: how much time the remote may cost a build, and whether a fetch pays.

Each operation saves time or wastes it. Let w be the wasted seconds: operations that failed or found
nothing, and the time by which a fetch exceeded the making. Let m be the seconds of stages and of
time saved by fetches. The breaker opens, and the remote is no longer used, as soon as

    w > B + WASTE_SHARE · m

An operation is stopped when w would exceed that, and a fetch when it takes longer than making. So a
remote delays a build by at most B (Patience.bound), or the time to build one artifact if that is
longer, and a tenth of the build's own time.

A fetch of n bytes is predicted to take l + n / b, with the latency l and the bandwidth b measured
(exponentially smoothed). It pays when that is less than the making took, plus START_S: making an
artifact also loads the libraries of its stage.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

WASTE_SHARE = 0.1
START_S = 1.0
MIN_RATED_BYTES = 1 << 16  # of a transfer that measures bandwidth
SMOOTHING = 0.5
MIN_OPERATION_S = 0.5
MAX_FAILURES = 3  # in a row


@dataclass
class Rates:
    """Measured bytes per second and seconds per request; 0 while unknown."""

    bandwidth: float = 0.0
    latency: float = 0.0

    def transferred(self, size: int, seconds: float) -> None:
        if size >= MIN_RATED_BYTES and seconds > 0:
            self.bandwidth = _smoothed(self.bandwidth, size / seconds)

    def answered(self, seconds: float) -> None:
        self.latency = _smoothed(self.latency, seconds)

    def predicted(self, size: int) -> float:
        """The predicted seconds of a fetch of `size` bytes; only the latency if the
        bandwidth is unknown."""
        return self.latency + (size / self.bandwidth if self.bandwidth else 0.0)


def _smoothed(before: float, now: float) -> float:
    return now if not before else before + SMOOTHING * (now - before)


def pays(predicted: float, making: float) -> bool:
    """Whether fetching is cheaper than making, both in seconds."""
    return predicted <= making + START_S


@dataclass
class Ledger:
    """The breaker of one process. `reason` is why it is open; empty while it is closed.

    `last_failure` is the reason of the last failed operation, if any.
    """

    bound: float
    wasted: float = 0.0
    earned: float = 0.0  # m above
    failures: int = 0  # in a row
    has_answered: bool = False
    reason: str = ""
    last_failure: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def is_open(self) -> bool:
        return bool(self.reason)

    @property
    def left(self) -> float:
        """Seconds that the next operation may waste."""
        return max(MIN_OPERATION_S, self.bound + WASTE_SHARE * self.earned - self.wasted)

    def earn(self, seconds: float) -> None:
        """Adds the seconds of a stage, or those that a fetch saved."""
        with self._lock:
            self.earned += max(0.0, seconds)

    def settle(self, spent: float, making: float) -> None:
        """Records a fetch of `spent` seconds for an artifact that took `making` seconds, start not
        included."""
        if spent <= making + START_S:
            self.earn(making - spent)
        else:
            self.waste(spent - making - START_S, "fetching took longer than making")

    def succeed(self) -> None:
        self.failures, self.has_answered = 0, True

    def waste(self, seconds: float, reason: str) -> None:
        """Records an operation without gain."""
        with self._lock:
            self.wasted += max(0.0, seconds)
            if self.wasted > self.bound + WASTE_SHARE * self.earned:
                self.reason = self.reason or f"too slow: {reason}"

    def fail(self, seconds: float, reason: str, lasting: bool) -> None:
        """Records a failed operation."""
        self.waste(seconds, reason)
        with self._lock:
            self.failures += 1
            self.last_failure = reason
            if lasting or self.failures >= MAX_FAILURES:
                self.reason = self.reason or reason
