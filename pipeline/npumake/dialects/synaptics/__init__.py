"""synaptics: the metafile of `synap convert`, the converter of the SyNAP chips."""
