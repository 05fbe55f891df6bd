"""The borders of a model: where it ends, which nodes at its ends go, what stands in front of it.

It refuses to know YAML and files: it is told which nodes, and as a Feeding what is fed.
"""
