"""What runs, and why.

    plan    stages x targets → nodes          code   which source a stage depends on
    build   keys, stamps, what is current     maker  recall an artifact or run its stage
    why     two key documents compared        tasks  nodes as doit tasks
    trials  a model under other types, each score kept like an artifact
    declarations   what the signatures of the stages say, remembered

doit schedules, the store remembers. `maker` and `trials` load the stages, and through them NumPy
and ONNX; `plan` knows only what they declare, and the others nothing of them, so that a build with
nothing to do loads neither.
"""
