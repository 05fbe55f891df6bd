"""kernels: the integer arithmetic of the judge, and the measures of closeness, on arrays alone.

Every function is pure, and exact or correctly rounded: its result is the same on every CPU and
thread count. The room refuses to know graphs, models, targets and files; who calls says the grid.
"""
