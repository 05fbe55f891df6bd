"""Corrections: functions from graph to graph that reduce the quantization error.

    corrections               the table            rounding            GPTQ-style rounding
    cross_layer_equalization  equal channel sizes  adaptive_rounding   rounds for the layer's output
    smoothquant               activations to weights   weight_clipping least-squares weight scales
    rescale_groups            shared by these two  bias_correction     removes mean shifts

A project or the search decides which of them apply.
"""
