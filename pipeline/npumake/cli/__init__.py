"""What a person types, and everything that prints. One module per verb; `show` draws errors.

It refuses to decide: freshness, keys and numbers come from below as data.
"""
