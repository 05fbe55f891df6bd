"""What runs, and why.

    plan    stages x targets → nodes          code   the source a stage depends on
    build   keys, stamps, what is current     maker  fetch an artifact or run its stage
    why     two key documents compared        tasks  nodes as doit tasks
    trials  scores of a model under other types, stored like artifacts
    declarations   the signatures of the stages, stored
    seals   projects that are unchanged as a whole   sealing   what that rests on
    lock    digests of a project's artifacts   frozen  a build that is held to them
    touched the projects that a change concerns   git   what changed since a commit
    base    what the lock of that commit names, from the store
    executor  where nodes are made: here, or on a cluster   job  a node as a document
    delegation  the client's part of it   carrier  files through the shared store
    cluster  jobs on Dask   dask_worker  what its processes run   machine  their versions

doit schedules, the store remembers. `maker` and `trials` load the stages, and through them NumPy
and ONNX. `plan` only knows the declarations, and the other modules nothing of the stages, so a
build with nothing to do loads neither.
"""
