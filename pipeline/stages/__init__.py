"""The pipeline. Read the modules in the order of STAGES and you have read what npumake does.

A stage takes values and gives a value. It refuses to know paths, caches, logs and clocks; the
same inputs make the same bytes.
"""

from pipeline.stages.calibrated import calibrated
from pipeline.stages.calibrated_score import calibrated_score
from pipeline.stages.comparison import comparison
from pipeline.stages.compiled import compiled
from pipeline.stages.compiled_score import compiled_score
from pipeline.stages.evaluation import evaluation
from pipeline.stages.findings import findings
from pipeline.stages.float_score import float_score
from pipeline.stages.gates import gates
from pipeline.stages.handover import handover
from pipeline.stages.listings import listings
from pipeline.stages.optimized_float import optimized_float
from pipeline.stages.original_float import original_float
from pipeline.stages.quantized import quantized
from pipeline.stages.quantized_score import quantized_score
from pipeline.stages.recipe import recipe
from pipeline.stages.report import report
from pipeline.stages.samples import samples
from pipeline.stages.stage import stage_table
from pipeline.stages.statistics import statistics
from pipeline.stages.verdict import verdict

STAGES = stage_table(
    original_float,
    optimized_float,
    samples,
    statistics,
    recipe,
    calibrated,
    quantized,
    handover,
    compiled,
    comparison,
    listings,
    float_score,
    calibrated_score,
    quantized_score,
    compiled_score,
    verdict,
    evaluation,
    findings,
    report,
    gates,
)
