"""Estimates the cost of a compiled model on its chip: operations, bytes and latency.

An estimate comes from the program and the published figures of the target, or from Vela for files
that it compiled. Nothing is measured here; `npumake bench` measures.
"""
