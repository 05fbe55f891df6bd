"""The borders of a model: its first and last nodes, and the preprocessing in front of it.

    begin, cut                 move an end          front, crop, preprocess   nodes in front
    images, inputs, policies   facts about inputs that later stages need
    documented                 stage files in the form that the vendors document

This room reads no YAML and no files. Callers pass node names and a Feeding per input.
"""
