"""The project's security policies, by tensor of the bundle.

The planes of a picture share the policy of their input. The rectangle of a crop has no policy, so
that an application can always set it. Source: SyNAP's guide, "Preprocessing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npumake.borders.images import model_order
from npumake.bundle.archive import INPUT_POLICIES, OUTPUT_POLICIES
from npumake.bundle.program import Program
from npumake.errors import ProjectError, Route, did_you_mean
from npumake.graph import Graph
from npumake.project.feeding import PICTURES
from npumake.project.names import entries, strangers
from npumake.project.sections import Security

TAGS = sorted({plane.tag for _, planes in PICTURES.values() for plane in planes if plane.tag})


def policies(security: Security, quantized: Graph, program: Program) -> dict[str, dict[str, str]]:
    """Policies other than the default, by role and tensor. Raises ProjectError for an unknown
    name."""
    of_inputs = _unusual("inputs", security.inputs, model_order(quantized), INPUT_POLICIES[0])
    planes = {
        plane: policy
        for name, policy in of_inputs.items()
        for plane in (name, *(f"{name}_{tag}" for tag in TAGS))
        if plane in program.inputs
    }
    of_outputs = _unusual("outputs", security.outputs, program.outputs, OUTPUT_POLICIES[0])
    return {
        role: by_name for role, by_name in (("inputs", planes), ("outputs", of_outputs)) if by_name
    }


def _unusual(
    role: str, declared: Mapping[str, str], names: Iterable[str], usual: str
) -> dict[str, str]:
    names = tuple(names)
    for name in strangers(declared, names):
        hint = did_you_mean(name, names)
        message = f"the model has no {role.removesuffix('s')} `{name}`"
        raise ProjectError(message, Route(f"security.{role}.{name}"), hint)
    by_name = {name: declared[key] for name, key in entries(declared, names).items()}
    return {name: policy for name, policy in by_name.items() if policy != usual}
