"""drobotics: the RDK boards as data, and the YAML of their tool `hb_mapper`, translated."""
