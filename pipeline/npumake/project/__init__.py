"""project: reads a directory of YAML into typed values with the place of each key.

Import single modules, so that a build with nothing to do does not load the YAML parser. The room
knows keys, types, defaults, places and the files a project names. It knows no models, chips, stages
or arrays, and opens only YAML files.
"""
