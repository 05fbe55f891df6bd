"""Detectors: what their metadata says, where their heads are cut, what their outputs mean.

`metadata` reads EdgeFirst's schema v2, the one description of a detector that survives its export;
`split` cuts a head's outputs as its hints say; `distance` finds the arithmetic of its boxes;
`decode` turns outputs into boxes, scores and masks. Nothing here quantizes or measures.
"""
