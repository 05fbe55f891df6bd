"""The pipeline. Read the modules in the order of STAGES and you have read what npumake does.

A stage is a function from values to a value. It knows no paths, caches, logs or clocks, and the
same inputs give the same bytes. Its module is loaded when it runs.
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
