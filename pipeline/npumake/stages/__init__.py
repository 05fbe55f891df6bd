"""The pipeline. Read the modules in the order of STAGES and you have read what npumake does.

A stage is a function from values to a value. It knows no paths, caches, logs or clocks, and the
same inputs give the same bytes. Its module is loaded when it runs.
"""

# The stage `score` is fanned out over artifacts: by name, the input that is its `artifact`.
SCORES = {
    "float_score": "original_float",
    "calibrated_score": "calibrated",
    "quantized_score": "quantized",
    "compiled_score": "compiled_model",
}

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
    *SCORES,
    "verdict",
    "evaluation",
    "findings",
    "report",
    "gates",
)

# Inputs that are computed for each run and not stored: by name, the function that computes them.
# Its parameters are inputs of the stage.
COMPUTED = {
    "compared_models": "npumake.debug.compared_batches.compared_models",
    "compiled_model": "npumake.stages.compiled_model.compiled_model",
    "dataset": "npumake.evaluate.artifact_scores.dataset_for",
    "evaluator": "npumake.quant.search.figures.evaluator_of",
    "graphs": "npumake.quant.search.model_graphs.model_graphs",
    "handover_sections": "npumake.stages.handover.handover_sections",
    "operators": "npumake.custom.operators.declared",
    "own_file": "npumake.stages.compiled.own_file",
    "scores": "npumake.evaluate.figures.scores_of",
    "task_results": "npumake.stages.findings.task_results_of",
    "type_judge": "npumake.quant.search.type_judge.judge_of",
}

# What a stage distributes (npumake.distribution): functions of an `item` and inputs of the stage.
PARTS = (
    "npumake.debug.compared_batches.compared_batch",
    "npumake.evaluate.batches.batch",
    "npumake.quant.calibration.shards.shard",
    "npumake.quant.search.figures.figure",
    "npumake.quant.search.modelwise.candidate_trial",
    "npumake.quant.search.tensor_noise.probe",
    "npumake.quant.search.trials.switch_trial",
    "npumake.quant.search.type_judge.trial",
)
