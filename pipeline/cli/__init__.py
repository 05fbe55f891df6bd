"""What a person types, and everything that prints. One module per verb; `show` draws errors.

It refuses to decide: freshness, keys and numbers come from below as data.
"""

import os

# Samples are computed side by side, so a library that splits one product over threads only gets
# in the way: small matrices become many times slower. It has to be said before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
