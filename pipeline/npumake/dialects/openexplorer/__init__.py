"""OpenExplorer: the keys, groups and rules that the YAML of hb_mapper and hb_compile share."""
