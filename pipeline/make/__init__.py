"""What runs, and why.

    plan    stages x targets → nodes          code   which source a stage depends on
    build   keys, stamps, what is current     maker  recall an artifact or run its stage
    why     two key documents compared        tasks  nodes as doit tasks

doit schedules, the store remembers. `plan` and `maker` know the stages, and through them NumPy and
ONNX; the others do not, so that a build with nothing to do loads neither.
"""
