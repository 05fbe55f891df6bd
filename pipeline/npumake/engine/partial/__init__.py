"""Parts of a graph: cut, carry, rerun downstream.

    part         some nodes ready to run, and two ways to run several: in order; where changed
    cut          where a graph is cut: at its layers, behind a tensor, where least crosses
    opened       parts as sessions of onnxruntime, with Python for custom operators
    walk         step by step over samples, while the caller edits what comes later
    downstream   the outputs after a change of one tensor, for many tensors
    disk_buffer  carried tensors of more samples than memory holds

Float sessions with custom operators, corrections, the search and the debugger use it. The observer
of statistics does not (`engine.observed_session`): it cuts onnxruntime's rewritten model and
carries tensors in fixed memory.
"""
