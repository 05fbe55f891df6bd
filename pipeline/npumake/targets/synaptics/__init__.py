"""synaptics: the SyNAP chips as data, and the metafile of `synap convert`, translated."""
