"""comparison: how close every node stays to the float model, over all samples.

optimized_float in float · calibrated in float with Q/DQ · quantized in exact integers

If an output's error is large, the node with the largest error is found over the first
MAX_DIAGNOSIS_SAMPLES samples, with a suggestion that has been tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npumake.custom.operators import declared
from npumake.data.samples import Samples
from npumake.debug.calibration_notes import calibration_notes
from npumake.debug.compare import compare
from npumake.debug.compared import Comparison
from npumake.debug.diagnosis.rank_causes import worst_node
from npumake.debug.diagnosis.suggestions import CalibrationInputs
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import Graph
from npumake.progress import track
from npumake.project.files import SourceFiles
from npumake.project.sections import Calibration, CodeFiles, Quantization
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.rescale_groups import rescaled
from npumake.quant.precision.form import in_form
from npumake.quant.precision.placement import observed
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.recipe import Recipe
from npumake.targets.advice import words_of
from npumake.targets.target import Target

MAX_DIAGNOSIS_SAMPLES = 4


def comparison(
    optimized_float: Graph,
    statistics: Statistics,
    recipe: Recipe,
    calibrated: Graph,
    quantized: Graph,
    samples: Samples,
    calibration: Calibration,
    target: Target,
    sources: SourceFiles,
    vendor_dialect: str | None,
    custom_operators: Sequence[CodeFiles] = (),
    quantization: Quantization = DEFAULT,
) -> Comparison:
    operators = declared(custom_operators, sources)
    feeds = track(samples, "comparison", len(samples))
    own = in_form(optimized_float, target)
    statistics = statistics.of(observed(own))
    real = rescaled(own, recipe.factors)  # its tensors are those that have the grids
    found = compare(real, calibrated, quantized, feeds, target, operators)
    patient = ModelUnderTest(calibrated, samples, operators, data_num=MAX_DIAGNOSIS_SAMPLES)
    made_of = (own, statistics, recipe, samples, target, operators)
    words = words_of(vendor_dialect)
    making = CalibrationInputs(*made_of, calibration, quantization, words)
    notes = calibration_notes(quantized, statistics, samples, calibration)
    worst = worst_node(found, patient, making)
    told = tuple(map(words.text, (*found.notes, *notes)))
    return replace(found, worst_node=worst, notes=told)
