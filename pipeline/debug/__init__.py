"""How close an artifact stays to the float model, node by node.

It refuses to judge: cosines are reported, gates decide elsewhere.
"""
