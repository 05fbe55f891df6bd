"""Parameters of a stage: the meaning of each name, and how a stage is called.

A parameter that COMPUTED lists is computed by a function. The parameters of that function are then
inputs of the stage, so that keys and plans know them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from npumake.stages import COMPUTED, PARTS, SCORES, STAGES

Function = Callable[..., Any]
ARTIFACT = "artifact"  # a parameter of `score`
ITEM = "item"  # of a part
SCORE = "score"


def scored_artifact(stage: str) -> str:
    """`quantized` of the stage `quantized_score`."""
    return stage.removesuffix(f"_{SCORE}")


class Parameter(NamedTuple):
    """A parameter called `keyword`, and the input that it is."""

    keyword: str
    input: str
    hint: Any
    is_optional: bool


def module_of(name: str) -> str:
    return f"{__package__}.{SCORE if name in SCORES else name}"


def function_of(name: str) -> Function:
    """The function of a stage; loads its module."""
    return getattr(import_module(module_of(name)), SCORE if name in SCORES else name)


def inputs_of(name: str) -> dict[str, Parameter]:
    """The parameters of a stage by input, in order; in place of a computed input, its own.

    An input is optional if all its readers do without it.
    """
    return _merged(_flat(function_of(name), SCORES.get(name, "")))


def modules_of(name: str) -> tuple[str, ...]:
    """The module of a stage and those of its computed inputs."""
    computed = dict.fromkeys(_computed(function_of(name), SCORES.get(name, "")))
    return (module_of(name), *(COMPUTED[entry].rpartition(".")[0] for entry in computed))


def called(name: str, values: Mapping[str, Any]) -> Any:
    """Runs a stage on the values of its inputs; computes each computed input once."""
    return _called(function_of(name), SCORES.get(name, ""), dict(values))


def input_types(name: str) -> Mapping[str, type[Any]]:
    """The type of each stage that is an input, of one member if the stage joins many."""
    parameters = inputs_of(name)
    return {
        source: artifact_type(parameter.hint)
        for source, parameter in parameters.items()
        if source in STAGES
    }


def parameters_of(function: Function, artifact: str = "") -> list[Parameter]:
    hints = get_type_hints(function)
    return [
        Parameter(
            name,
            artifact if name == ARTIFACT else name,
            hints[name],
            parameter.default is not parameter.empty,
        )
        for name, parameter in inspect.signature(function).parameters.items()
    ]


def _merged(parameters: Iterator[Parameter]) -> dict[str, Parameter]:
    merged: dict[str, Parameter] = {}
    for parameter in parameters:
        first = merged.setdefault(parameter.input, parameter)
        optional = first.is_optional and parameter.is_optional
        merged[parameter.input] = first._replace(is_optional=optional)
    return merged


def _flat(function: Function, artifact: str = "") -> Iterator[Parameter]:
    for parameter in parameters_of(function, artifact):
        if parameter.input not in COMPUTED:
            yield parameter
            continue
        for inner in _flat(computing(parameter.input)):
            yield inner._replace(is_optional=inner.is_optional or parameter.is_optional)


def _computed(function: Function, artifact: str = "") -> Iterator[str]:
    """The computed inputs, with those that they are computed from."""
    for parameter in parameters_of(function, artifact):
        if parameter.input in COMPUTED:
            yield parameter.input
            yield from _computed(computing(parameter.input))


def computing(name: str) -> Function:
    return _imported(COMPUTED[name])


def part_named(name: str) -> Function:
    """The function of PARTS. Raises ValueError for another one."""
    if name not in PARTS:
        raise ValueError(f"`{name}` is no part of a stage")
    return _imported(name)


def part_inputs(part: Function, stage: str) -> list[Parameter]:
    """The inputs of the stage that the calls of a part share."""
    inputs = _flat(part, SCORES.get(stage, ""))
    return [parameter for parameter in inputs if parameter.input != ITEM]


def part_called(part: Function, stage: str, values: dict[str, Any], item: bytes) -> bytes:
    """Calls a part on `values` of the stage's inputs, which gain those that are computed for it."""
    values[ITEM] = item
    return bytes(_called(part, SCORES.get(stage, ""), values))


def _imported(name: str) -> Function:
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


def _called(function: Function, artifact: str, values: dict[str, Any]) -> Any:
    arguments = {}
    for parameter in parameters_of(function, artifact):
        if parameter.input not in values and _is_computable(parameter.input, values):
            values[parameter.input] = _called(computing(parameter.input), "", values)
        if parameter.input in values:
            arguments[parameter.keyword] = values[parameter.input]
    return function(**arguments)


def _is_computable(name: str, values: Mapping[str, Any]) -> bool:
    """Whether every parameter without default has a value."""
    return name in COMPUTED and all(
        parameter.is_optional
        or values.get(parameter.input) is not None
        or _is_computable(parameter.input, values)
        for parameter in parameters_of(computing(name))
    )


def artifact_type(hint: Any) -> type[Any]:
    """T of `T | None` and of `Mapping[str, T]`."""
    members = [member for member in get_args(hint) if member not in (NoneType, str)]
    return members[0] if members else hint
