"""The check of a compiled file: it is run, and each node is judged from the file's own inputs.

runs             how this machine runs a file, and what it shows of its inner tensors
meaning          what a node computes, in float
nodes            each node from the values in front of it in the file
index_ties       indices of uncertain values
rounding_error   how far float arithmetic may take a node
picked           indices of values that are uncertain
constants        weights and biases, read back from the bytes of the file
iree_taps        inner tensors of a runtime that shows none
fault            a wrong node
cutting          shortened files, where a file ends its process
check            all of it, sample by sample

This room does not know how a file is compiled, only what the node in it means.
"""
