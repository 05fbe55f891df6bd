"""The report of a project as one self-contained HTML page, and the comparison of two builds.

    findings  data of one target: JSON         layout        positions of the graph's nodes
    tensors   distributions and channels       sample_views  samples with both models' results
    page      findings of all builds → HTML    overlays      masks and class maps over pictures
    diff      two artifacts, or two builds    workspace    all projects, also over time

The package only presents data. Names in a page are untrusted: its scripts write them as text, never
as markup.
"""
