"""project: a directory of YAML, read into typed values that know where they are written.

A room of small modules: import the one you need, so that a no-op does not load a YAML parser.
It knows keys, types, defaults, places and the files a project names.
It refuses to know models, chips, stages and arrays: it never opens a file that is not YAML.
"""
