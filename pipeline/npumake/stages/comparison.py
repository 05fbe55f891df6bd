"""comparison: the error of every node against the float model.

optimized_float in float · calibrated in float with Q/DQ · quantized in exact integers

The units and subgraphs are those of the compiled file, where its format says them.

Computed from evenly spaced samples, all of them for a report or gates (`comparison.samples`). For a
large output error the causing node is diagnosed over the first DIAGNOSIS_SAMPLES of these. Every
suggestion has been tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples, spaced_numbers
from npumake.debug.calibration_notes import calibration_notes
from npumake.debug.compare import compared
from npumake.debug.compared import Comparison
from npumake.debug.compared_batches import compared_models, sums_of_batches
from npumake.debug.compiled_placement import with_file_placement
from npumake.debug.diagnosis.suggestions import CalibrationInputs
from npumake.debug.diagnosis.worst_node import worst_node
from npumake.debug.input_grids import input_grid_notes
from npumake.debug.sensitivity import ModelUnderTest
from npumake.dialects.advice import wording_of
from npumake.project.sections import Calibration, ComparisonSettings, Quantization
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.qdq.brought_grids import LOAD
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.model_graphs import ModelGraphs
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target

DIAGNOSIS_SAMPLES = 4
COMPARED_SAMPLES = 16  # by default: their figures are close, and a person waits for them
PLAIN = ComparisonSettings()


def comparison(
    graphs: ModelGraphs,
    statistics: Statistics,
    recipe: Recipe,
    samples: Samples,
    calibration: Calibration,
    target: Target,
    vendor_dialect: str | None,
    operators: Operators = NO_OPERATORS,
    quantization: Quantization = DEFAULT,
    comparison: ComparisonSettings = PLAIN,
    own_file: bytes | None = None,
) -> Comparison:
    count = COMPARED_SAMPLES if comparison.samples is None else comparison.samples
    numbers = spaced_numbers(len(samples), len(samples) if count == "all" else count)
    samples_compared = samples.subset(numbers)
    statistics = statistics.of(observed_tensors(graphs.trained))
    calibrated, quantized = graphs.calibrated, graphs.quantized
    result = _figures(graphs, samples, numbers, target, operators, own_file)
    model = ModelUnderTest(calibrated, samples_compared, operators, data_num=DIAGNOSIS_SAMPLES)
    made_of = (graphs.trained, statistics, recipe, samples, target, operators)
    words = wording_of(vendor_dialect)
    inputs = CalibrationInputs(*made_of, calibration, quantization, words)
    notes = calibration_notes(quantized, statistics, samples, calibration)
    if recipe.method == LOAD:
        notes = (*notes, *input_grid_notes(calibrated, samples_compared, operators))
    worst = worst_node(result, model, inputs)
    texts = tuple(map(words.text, (*result.notes, *notes)))
    return replace(result, worst_node=worst, notes=texts, available=len(samples))


def _figures(
    graphs: ModelGraphs,
    samples: Samples,
    numbers: Sequence[int],
    target: Target,
    operators: Operators,
    own_file: bytes | None,
) -> Comparison:
    """The figures of all nodes, placed as in the compiled file. The engines end here, before a
    diagnosis opens others."""
    models = compared_models(graphs, target, operators)
    result = compared(models, sums_of_batches(models, samples, numbers))
    return result if own_file is None else with_file_placement(result, own_file, models)
