"""Compares the tensors that a board, a simulator or an emulator dumped with ours, node by node.

    folder → files → naming → matching → reading → walk → causes
                                                             one row a node, the first that diverges

Dumps are untrusted: sizes are bounded, nothing is unpickled, and links may not leave the folder.
The package does not depend on which board wrote the files.
"""
