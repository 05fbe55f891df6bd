"""Search: which ranges, switches and types keep the answers closest, found by running the model.

    recipe      what was decided, and on what evidence   methods   the ranges that a method gives
    bench, closeness  the model tried on held-out samples    trials    one decision after another
    judge, choice, mixed_precision  nodes given more bits until the answers are good enough
    sensitive, tail   where 8 bits cost most, and the last layers

It refuses to look at the samples that the ranges were found on.
"""
