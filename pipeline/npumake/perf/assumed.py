"""What an estimate rests on, and what it says, for a person."""

from __future__ import annotations

from collections.abc import Iterator

from npumake.bundle.program import Program
from npumake.targets.cost import Cost

UNKNOWN = "unknown"
BOUND = "computing alone; the bandwidth of its DDR is not published"


def latency_text(
    latency: float | None,
    at_least: float,
    interval: tuple[float, float] | None = None,
    extrapolated: bool = False,
) -> str:
    """Of seconds, in milliseconds; a fitted estimate has an interval, and a bound says of what."""
    if latency is None:
        return f"at least {1000 * at_least:.4g} ms ({BOUND})" if at_least else UNKNOWN
    if interval is None:
        return f"{1000 * latency:.4g} ms"
    low, high = interval
    beyond = ", extrapolated" if extrapolated else ""
    return f"{1000 * latency:.3g} ms ({1000 * low:.3g} to {1000 * high:.3g}{beyond})"


def megabytes(moved: int, interval: tuple[int, int] | None) -> str:
    """Of bytes, with the interval of a fitted estimate."""
    if interval is None:
        return f"{moved / 1e6:.3f}"
    low, high = (bound / 1e6 for bound in interval)
    return f"{moved / 1e6:.3f} ({low:.3g} to {high:.3g})"


def assumptions(program: Program, cost: Cost, cores: int, has_own_ddr: bool) -> Iterator[str]:
    """What the figures rest on, for a person."""
    if cost.fitted is not None:
        yield from cost.fitted.on
    yield from _published(program, cost, cores, has_own_ddr)
    yield "what runs on the CPU is not in the estimate; nothing was measured"


def _published(program: Program, cost: Cost, cores: int, has_own_ddr: bool) -> Iterator[str]:
    if cost.macs is None:
        yield "the unit's int8 peak is not published: computing takes no time here"
    else:
        used = min(cores, cost.cores)
        yield (
            f"{cost.macs * used / cost.cores / 1e12:g} T int8 multiply-accumulates per second "
            f"({used} of {cost.cores} cores), always reached: a lower bound of the time"
        )
        if used > 1:
            yield "D-Robotics says of two cores that they are about 1.5 times as fast as one"
    fitted = cost.fitted
    if cost.ddr is None:
        yield "the bandwidth of its DDR is not published" + (
            "; --ddr takes yours" if fitted is None else f": {fitted.ddr / 1e9:.3g} GB/s is fitted"
        )
    else:
        yield f"{cost.ddr / 1e9:g} GB/s of DDR" + (", as given" if has_own_ddr else "")
    if cost.kept is None:
        yield "its memory on the chip is not published: every tensor goes through DDR"
    else:
        yield f"{cost.kept} bytes of a map stay on the chip, the rest goes through DDR and back"
    if fitted is not None:
        low, high = (1000 * bound for bound in fitted.seconds)
        yield f"fitted on models of {low:.2g} to {high:.2g} ms: beyond that it is extrapolated"
        yield f"on the board a run takes {1000 * fitted.board:.2g} ms more, on one thread"
        return
    if any(tensor.dtype == "int16" for tensor in program.tensors.values()):
        yield "products of int16 are counted at the peak of int8"
    yield "loading and computing overlap within a layer, not between layers"
    yield "arithmetic that is no product takes no time of its own: its rate is not published"
