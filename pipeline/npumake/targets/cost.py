"""Cost: the figures of a chip for estimates, published or fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from npumake.project.doc import Doc


@dataclass(frozen=True)
class Fitted:
    """A model of the unit's time and traffic, fitted on figures of the vendor's tools and boards.

    The formula is that of npumake.perf.fitted. An interval is two factors of the estimate, from
    the errors on models that were left out of the fit.
    """

    conv: Annotated[float, Doc("Multiply-accumulates per second with all lanes busy.", 1.0)]
    lanes: Annotated[
        int, Doc("Input channels of a group that are multiplied in parallel.", minimum=1)
    ]
    table: Annotated[float, Doc("Bytes per second of lookup tables.", 1.0)]
    arithmetic: Annotated[
        float, Doc("Bytes per second of additions, pools, resizes and divisions.", 1.0)
    ]
    concat: Annotated[float, Doc("Bytes per second of Concat.", 1.0)]
    mixed: Annotated[
        float,
        Doc(
            "Bytes per second, inputs and outputs, of transposes, products of two feature "
            "maps and reductions.",
            1.0,
        ),
    ]
    ddr: Annotated[float, Doc("Bytes per second between the unit and its DDR.", 1.0)]
    on_chip: Annotated[
        int, Doc("Bytes of a feature map that stay on the chip; the rest goes through DDR.", 0)
    ]
    board: Annotated[float, Doc("Seconds of a run on the board outside the unit.", 0.0)]
    seconds: Annotated[
        tuple[float, ...], Doc("Lowest and highest latency among the fitted models.", 0.0)
    ]
    latency: Annotated[tuple[float, ...], Doc("Interval of the latency: two factors.", 0.0)]
    bytes: Annotated[tuple[float, ...], Doc("Interval of the DDR bytes: two factors.", 0.0)]
    on: Annotated[tuple[str, ...], Doc("The fitted models and their errors, as text.")]

    def extrapolates(self, latency: float) -> bool:
        """Whether the latency is outside those of the fitted models."""
        low, high = self.seconds
        return not low <= latency <= high


@dataclass(frozen=True)
class Cost:
    """Published figures of the unit. An absent one is not published, and is not guessed."""

    macs: Annotated[
        float | None,
        Doc("Peak int8 multiply-accumulates per second of all `cores`; TOPS count each as two."),
    ] = None
    int16_rate: Annotated[
        float | None,
        Doc(
            "Multiply-accumulates per second that read int16, as a share of `macs`. null: not "
            "published, counted at the int8 rate.",
            0.01,
            1.0,
        ),
    ] = None
    ddr: Annotated[float | None, Doc("Bytes per second between the unit and its DDR.")] = None
    on_chip: Annotated[
        int | None,
        Doc("Bytes of a feature map that stay on the chip; the rest goes through DDR.", 0),
    ] = None
    cores: Annotated[int, Doc("Number of cores in `macs`.", minimum=1)] = 1
    core_num: Annotated[
        int | None, Doc("Maximum cores of one model. None: not documented.", minimum=1)
    ] = None
    fitted: Annotated[
        Fitted | None, Doc("Figures fitted to published models by benchmarks/fit_cost.py.")
    ] = None

    @property
    def on_chip_bytes(self) -> int | None:
        """Bytes of a map that stay on the chip. None: unknown, the whole map goes through DDR."""
        return self.on_chip if self.fitted is None else self.fitted.on_chip
