"""Recovery: accuracy won back, each a function from graph to graph. `switches` is the table.

    equalize  channels of one size               clipping  weight scales of least square error
    migrate   size from activations to weights   adaptive  weights rounded for the layer's output
    rescale   what these two have in common      bias      the mean shift taken off the biases

It refuses to decide which of them is on: a project says so, or the search.
"""
