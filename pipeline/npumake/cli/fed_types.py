"""The picture types that `npumake new --fed-type` offers, for a model trained on colors."""

EVEN_TYPES = ("nv12", "yuv444")  # these need even sides
COLOR_TYPES = ("rgb", "bgr", *EVEN_TYPES)
