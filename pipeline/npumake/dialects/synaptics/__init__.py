"""synaptics: the metafile of `synap convert`, the tool of the SyNAP chips."""
