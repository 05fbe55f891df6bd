"""The command line: one module per verb; `show` prints errors. Only this room prints.

It decides nothing: freshness, keys and figures come from the rooms below as data.
"""
