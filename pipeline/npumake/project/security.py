"""The section `security:`: the permitted memory of each input and output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc


@dataclass(frozen=True)
class Security:
    inputs: Annotated[
        Mapping[str, Literal["any", "secure", "non-secure"]],
        Doc("Required memory by input, `@0` for the first, `*` for all others. Default: any."),
    ] = field(default_factory=dict)
    outputs: Annotated[
        Mapping[str, Literal["secure-if-input-secure", "any"]],
        Doc("Required memory by output. Default: secure if an input is."),
    ] = field(default_factory=dict)
