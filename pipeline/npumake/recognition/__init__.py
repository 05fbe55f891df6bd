"""What a model file and its pictures say about how the model is fed, and what its outputs mean.

    facts        names, shapes, operators and notes of the file
    declared     the normalization that the file itself states          DECLARED
    families     families of models, each by its graph or its notes     FAMILIES
    measured     how well the float model does with each normalization
    proposal     all of it as one proposal, with the evidence and the doubts

This room proposes. It writes no file, and the build never asks it.
"""
