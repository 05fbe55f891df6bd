"""Calibration: what the tensors do over the samples, in one pass, and the ranges that follow.

    observe     the pass                             statistics    what it leaves behind
    layout, views, tally, share, reach               how tensors are fetched and counted
    derived     what follows from other tensors      thresholds    where they saturate, by method
    saturating  the part of a range that matters     ranges        the range of each tensor
    scores      answers that may be larger           uneven        channels of unlike sizes

It refuses to judge: whether a range is a good one, only a run of the model can say.
"""
