"""horizon: the YAML of hb_compile, the compiler of the Nash chips."""
