"""Refuses a set of samples: which inputs are pictures, and which findings the project allows.

A picture is declared by the input's `type` or `preprocess`, or read from an image file. Without
either, an array of three channels is one if no other input has its shape: caches come in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake.data.facts import Fact
from npumake.data.formats import is_image
from npumake.data.input_samples import InputSamples
from npumake.data.lint import LintedInput, Role, sample_findings
from npumake.progress import tell

RGB = 3
BYTES = ("int8", "uint8")  # of a quantized model; other integers count or name


def refuse_findings(sets: Sequence[InputSamples], facts: Sequence[Sequence[Fact]]) -> None:
    """Prints findings under `warn`. Raises ProjectError for the first finding that is neither under
    `warn` nor under `allow` of its input. Noise is not judged."""
    roles = [_role(own, about, sets) for own, about in zip(sets, facts, strict=True)]
    judged = [
        (own, LintedInput(own.input.name, role, about))
        for own, role, about in zip(sets, roles, facts, strict=True)
        if own.how.random is None
    ]
    for own, linted in judged:
        own.refuse_findings(linted.facts, linted.role, len(sets) == 1)
    by_name = {linted.name: own for own, linted in judged}
    for linted, finding in sample_findings([linted for _, linted in judged]) if judged else ():
        by_name[linted.name].refuse(finding)
    for _, linted in judged:
        if len(sets) > 1 and linted.role == "data" and linted.may_be_blank and linted.is_same:
            tell(f"`{linted.name}` is the same in all {len(linted.facts)} samples")


def _role(own: InputSamples, facts: Sequence[Fact], sets: Sequence[InputSamples]) -> Role:
    spec, form = own.input.spec, own.input.form
    if spec.offset or form.channels or any(is_image(file.name) for file in own.files):
        return "picture"
    if spec.dtype == "bool" or ("int" in spec.dtype and spec.dtype not in BYTES):
        return "discrete"
    if spec.dtype in BYTES and all(fact.low >= 0 and fact.high <= 1 for fact in facts):
        return "discrete"  # a mask
    axis = 3 if own.input.section.layout == "NHWC" else 1
    is_rgb = len(spec.shape) == 4 and spec.shape[axis] == RGB
    is_single = sum(other.input.spec.shape == spec.shape for other in sets) == 1
    return "picture" if is_rgb and is_single else "data"
