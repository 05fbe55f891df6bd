"""kernels: exact integer arithmetic of the reference engine, and similarity measures, only on
arrays.

Every function is pure, and exact or correctly rounded: the same result on every CPU and thread
count. This room does not know graphs, models, targets or files; callers pass scales and zero
points.
"""
