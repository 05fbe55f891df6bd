"""horizon: the nash chips as data, and the YAML of their tool `hb_compile`, translated."""
