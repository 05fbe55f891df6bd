"""Diagnosis: the node and the scale that an error comes from, found by rules over one model."""
