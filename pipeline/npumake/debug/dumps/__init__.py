"""The tensors that a board, a simulator or an emulator wrote, held node by node to ours.

    folder → files → naming → matching → reading → walk → causes
                                                             one row a node, the first that diverges

Nothing in a dump is trusted: sizes are bounded, no object is unpickled, no link is followed out of
the folder. The room refuses to know which board wrote the files.
"""
