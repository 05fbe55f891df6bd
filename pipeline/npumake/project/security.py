"""The section `security:`: where the memory of each input and output may lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc


@dataclass(frozen=True)
class Security:
    inputs: Annotated[
        Mapping[str, Literal["any", "secure", "non-secure"]],
        Doc("By input, `@0` the first, `*` the rest: the memory it must be in; any by default."),
    ] = field(default_factory=dict)
    outputs: Annotated[
        Mapping[str, Literal["secure-if-input-secure", "any"]],
        Doc("By output, likewise; secure where one input is, by default."),
    ] = field(default_factory=dict)
