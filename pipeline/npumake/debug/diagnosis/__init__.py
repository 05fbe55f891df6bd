"""Diagnosis: which node and which scale an error comes from, as rules over one model."""
