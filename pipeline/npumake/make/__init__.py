"""Builds: what runs, and why.

    plan    stages x targets → nodes          code   the source a stage depends on
    build   keys, stamps, what is current     maker  fetch an artifact or run its stage
    why     two key documents compared        tasks  nodes as doit tasks
    trials  scores of a model under other types, stored like artifacts
    declarations   the signatures of the stages, stored
    seals   projects that are unchanged as a whole   sealing   the stamps of their files
    lock    digests of a project's artifacts   locking  those of a finished build
    frozen  builds that must match their lock
    touched the projects that a change concerns   git   the changes since a commit
    base    the artifacts in the lock of that commit, from the store
    executor  where nodes are built: here, or on a cluster   job  a node as a document
    delegation  the client's part of it   carrier  files through the shared store
    cluster  jobs on Dask   dask_worker  the work of its processes   machine  their versions

doit schedules, the store remembers. `maker` and `trials` load the stages, and through them NumPy
and ONNX. `plan` only knows the declarations, and the other modules nothing of the stages, so a
build with nothing to do loads neither.
"""
