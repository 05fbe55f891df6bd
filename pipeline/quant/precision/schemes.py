"""SCHEMES: how a vendor's scheme for the whole model changes the grids of a target.

asymmetric_affine             activations with a zero point, one scale per weight
dynamic_fixed_point           q / 2**fl: int8, symmetric, every scale a power of two
perchannel_symmetric_affine   activations with a zero point, a scale per output channel
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.targets.target import Activations, Target, Weights

FIXED_POINT = "dynamic_fixed_point"
WEIGHTS: Mapping[str, Weights] = {
    "asymmetric_affine": Weights("int8", per_channel=False),
    FIXED_POINT: Weights("int8", per_channel=False, power_of_two=True),
    "perchannel_symmetric_affine": Weights("int8", per_channel=True),
}


def with_scheme(target: Target, scheme: str | None) -> Target:
    """The target with the grids of `scheme`; as it is where none is asked for."""
    if scheme is None:
        return target
    fixed = scheme == FIXED_POINT
    activations = (
        Activations("int8", symmetric=True, power_of_two=True)
        if fixed
        else Activations(target.activations.dtype, symmetric=False)
    )
    wide = fixed or target.int16_power_of_two
    return replace(
        target, activations=activations, weights=WEIGHTS[scheme], int16_power_of_two=wide
    )
