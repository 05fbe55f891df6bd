"""comparison: how close every node stays to the float model, over all samples.

optimized_float in float · calibrated in float with Q/DQ · quantized in exact integers

Where an answer is far off, the node to blame is found out over the first WITNESSES samples, and
what is advised has been tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.debug.calibration_notes import calibration_notes
from pipeline.debug.compare import compare
from pipeline.debug.compared import Comparison
from pipeline.debug.guilt import guilty
from pipeline.debug.remedy import Making
from pipeline.debug.sensitivity import Patient
from pipeline.graph import Graph
from pipeline.progress import track
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Calibration, CodeFiles, Quantization
from pipeline.quant.calibration.statistics import Statistics
from pipeline.quant.precision.form import in_form
from pipeline.quant.precision.placement import observed
from pipeline.quant.qdq.insert import DEFAULT
from pipeline.quant.recovery.rescale import rescaled
from pipeline.quant.search.recipe import Recipe
from pipeline.targets.advice import words_of
from pipeline.targets.target import Target

WITNESSES = 4


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
    patient = Patient(calibrated, samples, operators, data_num=WITNESSES)
    made_of = (own, statistics, recipe, samples, target, operators)
    words = words_of(vendor_dialect)
    making = Making(*made_of, calibration, quantization, words)
    notes = calibration_notes(quantized, statistics, samples, calibration)
    guilty_node = guilty(found, patient, making)
    told = tuple(map(words.text, (*found.notes, *notes)))
    return replace(found, guilty=guilty_node, notes=told)
