"""Calibration: collects activation statistics in one pass and derives ranges from them.

    observe                  the pass over the samples
    statistics               histograms and extremes, as an artifact
    buffer_layout            the order of a sample's tensors in one array
    minmax_observer          exact extremes of channels and tensors
    histogram_observer       histograms, of a subsample (subsampling)
    derived_statistics       statistics that follow from another tensor's
    thresholds               thresholds by method
    ranges                   the range of each tensor
    activation_aware_ranges, saturation_points     ranges cut where their readers saturate
    output_headroom          wider ranges for Sigmoid and Softmax
    channel_imbalance        channels of very different sizes

It does not judge ranges: only a run of the model can.
"""
