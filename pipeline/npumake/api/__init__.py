"""The Python API, for notebooks and scripts. `npumake.PUBLIC` lists the public names.

build        a project, as `npumake build` does                  → BuildResult
quantize     a model and samples, without a project              → QuantizedModel
check        a model file and a chip                             → CheckResult
compare      two model files on the same samples                 → Table
"""
