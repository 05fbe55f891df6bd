"""Diagnosis: the node and the scale that an error comes from, found by rules over one model.

rules           RULES: what is looked for, each a function from a model to its findings
examination     what the rules share: losses, fits of the ranges, the inferred method
rank_causes     the findings in order
most_sensitive  the node that alone loses most, without a probe of every node
worst_node      one of these in a broken build, with a suggestion
"""
