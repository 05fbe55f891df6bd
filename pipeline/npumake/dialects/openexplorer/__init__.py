"""openexplorer: the keys, groups and rules that hb_mapper and hb_compile share."""
