"""drobotics: the YAML of hb_mapper, the tool of the RDK boards."""
