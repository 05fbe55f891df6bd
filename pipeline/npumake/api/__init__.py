"""The Python API: what a notebook or a script calls. The public names stand in `npumake.PUBLIC`.

build        a project, as `npumake build` does                  → BuildResult
quantize     a model and samples, without a project              → QuantizedModel
check        a model file and a chip                             → CheckResult
compare      two model files on the same samples                 → Table
"""
