"""drobotics: the YAML of hb_mapper, the compiler of the RDK boards."""
