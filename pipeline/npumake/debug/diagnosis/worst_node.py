"""The worst node of a broken build, with a suggestion.

In a model that brings its scales, any of them may be wrong: it is the first of all causes
(rank_causes). Scales of ours follow one method and contradict nothing: it is the node that alone
loses most (most_sensitive), and only its own grids are examined.
"""

from __future__ import annotations

from npumake.debug.compared import Comparison, WorstNode, rounded
from npumake.debug.diagnosis.bias_scale_checks import bias_scale_contradictions
from npumake.debug.diagnosis.most_sensitive import most_sensitive
from npumake.debug.diagnosis.rank_causes import RankedCause, cause_of, rank_causes
from npumake.debug.diagnosis.scale_consistency import with_explicit_clamps
from npumake.debug.diagnosis.suggestions import CalibrationInputs, remedied
from npumake.debug.sensitivity import ModelUnderTest, sensitivities
from npumake.graph import origin
from npumake.kernels.measure import worst
from npumake.quant.qdq.brought_grids import LOAD

BROKEN_COSINE = 0.99  # below it for an output, a build is broken


def worst_node(
    comparison: Comparison, model: ModelUnderTest, inputs: CalibrationInputs
) -> WorstNode | None:
    """The first cause of a broken build, with a suggestion; None if the build is not broken.
    Raises GraphError."""
    brought = inputs.recipe.method == LOAD
    if not comparison.samples or not _is_broken(comparison, model, brought):
        return None
    first = next(iter(rank_causes(model)), None) if brought else _costliest(model)
    if first is None:
        return None
    (node,) = (n for n in model.calibrated.nodes() if n.name == first.node)
    cause = first.cause or "8 bits are too few here"
    remedy = remedied(inputs, first.node, bool(first.cause), BROKEN_COSINE)
    facts = (first.node, rounded(first.lost), origin(node), cause)
    if remedy is None:
        return WorstNode(
            *facts, "", search=inputs.search, input_settings=inputs.words.input_settings
        )
    search = "" if remedy.after >= BROKEN_COSINE else inputs.search
    tried = (remedy.before, remedy.after)
    return WorstNode(*facts, remedy.yaml, tried, search, inputs.words.input_settings)


def _costliest(model: ModelUnderTest) -> RankedCause | None:
    name = most_sensitive(model)
    return None if name is None else cause_of(model, name)


def _is_broken(comparison: Comparison, model: ModelUnderTest, brought: bool) -> bool:
    """Whether an output's cosine is below BROKEN_COSINE. A model that is quantized already is
    its own reference: it is compared without its grids, and contradicting scales suffice."""
    cosines = [output.cosine for output in comparison.outputs]
    if brought:
        if bias_scale_contradictions(model.calibrated, model.nodes):
            return True
        model = with_explicit_clamps(model)
        every = {"": tuple(node.name for node in model.nodes)}
        cosines += [sums.cosine for sums in sensitivities(model, every)[""]]
    return not worst(cosines) >= BROKEN_COSINE
