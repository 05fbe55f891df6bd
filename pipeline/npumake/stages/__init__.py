"""The pipeline. Read the modules in the order of STAGES and you have read what npumake does.

A stage takes values and gives a value. It refuses to know paths, caches, logs and clocks; the
same inputs make the same bytes. Its module is loaded when it has to run.
"""

STAGES = (
    "original_float",
    "optimized_float",
    "samples",
    "statistics",
    "recipe",
    "calibrated",
    "quantized",
    "handover",
    "compiled",
    "compiled_check",
    "comparison",
    "listings",
    "calibration_fit",
    "float_score",
    "calibrated_score",
    "quantized_score",
    "compiled_score",
    "verdict",
    "evaluation",
    "findings",
    "report",
    "gates",
)
