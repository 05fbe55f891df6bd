"""Search: finds the ranges, switches and types with the closest outputs, by runs of the model.

    recipe      the decisions and their trials      methods   the ranges of each method
    evaluator, fidelity     trials on holdout samples     trials    one decision after another
    holdout     the samples that calibrate, and those that score
    type_judge, objective, mixed_precision  promotes nodes until the outputs suffice
    tensor_noise  the loss of one tensor     output_mix    ranges by that loss
    sensitive_tensors, output_layers  candidates for int16
    decisions   a build's decisions, for a vendor's tool

A trial is never scored on the samples of its ranges.
"""
