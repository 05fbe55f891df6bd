"""SCHEMES: how a vendor's scheme for the whole model changes the grids of a target.

asymmetric_affine             a zero point for activations, and for weights if the chip has them
dynamic_fixed_point           q / 2**fl: int8, symmetric, every scale a power of two
perchannel_symmetric_affine   activations with a zero point, a scale per output channel

If weights have the type of the activations, the project names the 8 bits. Int16 is dynamic fixed
point in every scheme (`Target.wide`, `weights_beside`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from npumake.project.sections import Quantization
from npumake.targets.target import Activations, Target, WeightGrid

FIXED_POINT = "dynamic_fixed_point"
PER_CHANNEL = "perchannel_symmetric_affine"


def with_scheme(target: Target, quantization: Quantization) -> Target:
    """The target with the grids of the project's scheme, if any."""
    scheme = quantization.scheme
    if scheme is None:
        return target
    if scheme == FIXED_POINT:
        activations = Activations("int8", symmetric=True, power_of_two=True)
        weights = WeightGrid("int8", per_channel=False, power_of_two=True)
        return replace(target, activations=activations, weights=weights, int16_power_of_two=True)
    own = target.weights_as_activations and scheme != PER_CHANNEL
    dtype = _narrow(target, quantization)
    return replace(
        target,
        activations=Activations(dtype, symmetric=False),
        weights=WeightGrid(dtype, per_channel=False, asymmetric=True)
        if own
        else WeightGrid("int8", per_channel=scheme == PER_CHANNEL),
    )


def _narrow(target: Target, quantization: Quantization) -> Literal["int8", "uint8"]:
    """The 8-bit type of activations: the one that the project names, if the chip has both."""
    types = quantization.types
    rules = types if isinstance(types, tuple) else (types,)
    named = {type for rule in rules for type in rule.values()} & {"int8", "uint8"}
    if target.weights_as_activations and len(named) == 1:
        return "int8" if "int8" in named else "uint8"
    return "uint8" if target.activations.dtype == "uint8" else "int8"


def weights_beside(target: Target, is_int16: bool) -> WeightGrid:
    """The weight grid for int16 or 8-bit activations."""
    if not (is_int16 and target.weights_as_activations):
        return target.weights
    return WeightGrid("int16", per_channel=False, power_of_two=target.int16_power_of_two)
