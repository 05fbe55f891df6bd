"""What changes numbers: which tensors are quantized, on which grids, and the Q/DQ that says so.

    placement   which nodes run on the chip         integers    float weights → int8 and int32
    observe     statistics of the tensors           qdq         grids → Q/DQ nodes in the graph
    tally       what is counted, as it comes        thresholds  statistics → where values saturate
    derived     what follows from other tensors     ranges      statistics → ranges, by method
    grids       range → scale and zero point        search      the best of several methods
    views       what onnxruntime hands out of them

Accuracy won back, each a function from graph to graph; the first two keep what it computes:

    equalize    channels of one size          clipping  weight scales by mean square error
    migrate     size from activations         adaptive  weights rounded for the layer's output
                to weights                    bias      the mean shift taken off the biases
    choice      which nodes to promote        layers, rescale: what these have in common

It refuses to know a vendor (that is `target`, as data) and never runs a graph in integers.
"""
