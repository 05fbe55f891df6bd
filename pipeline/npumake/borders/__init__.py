"""The borders of a model: where it ends, which nodes at its ends go, what stands in front of it.

    cut, crop     where it ends                  front, preprocess   what stands in front of it
    images, inputs, policies                     what later stages must know of its inputs

It refuses to know YAML and files: it is told which nodes, and as a Feeding what is fed.
"""
