"""A chip, its tool's YAML, a model format and a pass, for npumake."""
