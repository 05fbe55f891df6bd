"""Detectors: their metadata, the split of their heads, and the decoding of their outputs.

`metadata` reads EdgeFirst's schema v2. `split` cuts a head's outputs at its hints. `distance` finds
the nodes that compute boxes from distances. `decode` turns outputs into boxes, scores and masks.
This room neither quantizes nor measures.
"""
