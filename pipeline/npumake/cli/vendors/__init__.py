"""The vendors' own commands: the same options, files and log lines as the tools of those names."""
