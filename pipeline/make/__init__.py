"""What runs, and why.

    plan    stages x targets → nodes          code   which source a stage depends on
    build   keys, stamps, what is current     maker  recall an artifact or run its stage
    why     two key documents compared        tasks  nodes as doit tasks
    trials  a model under other types, each score kept like an artifact

doit schedules, the store remembers. `plan`, `maker` and `trials` know the stages, and through them
NumPy and ONNX; the others do not, so that a build with nothing to do loads neither.
"""
