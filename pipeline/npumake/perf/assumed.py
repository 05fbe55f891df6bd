"""The assumptions of an estimate, and its figures as text."""

from __future__ import annotations

from collections.abc import Iterator

from npumake.bundle.program import Program
from npumake.targets.cost import Cost

UNKNOWN = "unknown"
BOUND_BASIS = "its DDR bandwidth is not published"
COMPUTE_BOUND = "compute bound only"


def latency_text(
    latency: float | None,
    at_least: float,
    interval: tuple[float, float] | None = None,
    extrapolated: bool = False,
) -> str:
    """Seconds as text in milliseconds, with the interval of a fitted estimate, or as a bound."""
    if latency is None:
        return f"{COMPUTE_BOUND}: {1000 * at_least:.4g} ms ({BOUND_BASIS})" if at_least else UNKNOWN
    if interval is None:
        return f"{1000 * latency:.4g} ms"
    low, high = interval
    beyond = ", extrapolated" if extrapolated else ""
    return f"{1000 * latency:.3g} ms ({1000 * low:.3g} to {1000 * high:.3g}{beyond})"


def megabytes(moved: int, interval: tuple[int, int] | None) -> str:
    """Bytes as text in MB, with the interval of a fitted estimate."""
    if interval is None:
        return f"{moved / 1e6:.3f}"
    low, high = (bound / 1e6 for bound in interval)
    return f"{moved / 1e6:.3f} ({low:.3g} to {high:.3g})"


def assumptions(program: Program, cost: Cost, cores: int, has_own_ddr: bool) -> Iterator[str]:
    """The assumptions of an estimate, one sentence each."""
    if cost.fitted is not None:
        yield from cost.fitted.on
    yield from _published(program, cost, cores, has_own_ddr)
    yield "nodes on the CPU are not in the estimate; nothing was measured"


def _published(program: Program, cost: Cost, cores: int, has_own_ddr: bool) -> Iterator[str]:
    if cost.macs is None:
        yield "the unit's int8 peak is not published: compute time counts as 0"
    else:
        used = min(cores, cost.cores)
        yield (
            f"{cost.macs * used / cost.cores / 1e12:g} T int8 multiply-accumulates per second "
            f"({used} of {cost.cores} cores) at full use: a lower bound of the time"
        )
        if used > 1:
            yield "according to D-Robotics, two cores are about 1.5 times as fast as one"
    if any(tensor.dtype == "int16" for tensor in program.tensors.values()):
        yield _int16_rate(cost)
    fitted = cost.fitted
    if cost.ddr is None:
        how = "set it with --ddr, or in the project by `cost: {ddr: GB/s}`"
        rate = None if fitted is None else f": {fitted.ddr / 1e9:.3g} GB/s is fitted"
        yield "its DDR bandwidth is not published" + (rate or f"; {how}")
    else:
        yield f"{cost.ddr / 1e9:g} GB/s of DDR" + (", as given" if has_own_ddr else "")
    if cost.on_chip_bytes is None:
        yield "its on-chip memory is not published: every tensor goes through DDR"
    else:
        yield f"{cost.on_chip_bytes} bytes of a tensor stay on the chip, the rest goes through DDR"
    if fitted is not None:
        low, high = (1000 * bound for bound in fitted.seconds)
        yield f"fitted on models of {low:.2g} to {high:.2g} ms; extrapolated beyond that"
        yield f"a run on the board takes {1000 * fitted.board:.2g} ms more, on one thread"
        return
    yield "loading and computing overlap within a layer, not between layers"
    yield "other arithmetic takes no time of its own: its rate is not published"


def _int16_rate(cost: Cost) -> str:
    if cost.int16_rate is None:
        return "int16 multiply-accumulates count at the int8 rate: theirs is not published"
    return f"int16 multiply-accumulates take {1 / cost.int16_rate:g} times as long as int8 ones"
