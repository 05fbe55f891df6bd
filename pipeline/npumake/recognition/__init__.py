"""What a model file and its pictures show about the model's input and the meaning of its outputs.

    facts        names, shapes, operators and notes of the file
    declared     the normalization that the file itself states          DECLARED
    families     families of models, each by its graph or its notes     FAMILIES
    measured     how well the float model does with each normalization
    proposal     all of it as one proposal, with the evidence and the doubts

This room only proposes. It writes no file, and the build does not use it.
"""
