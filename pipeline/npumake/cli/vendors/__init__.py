"""vendors: the vendors' commands, with the same options, files and log lines as the originals."""
