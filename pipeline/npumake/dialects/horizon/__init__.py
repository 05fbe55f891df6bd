"""horizon: the YAML of hb_compile, the tool of the Nash chips."""
