"""Compilers that cannot share our interpreter: each is run by one of its own, where there is one.

An environment variable names the interpreter, a script in `scripts/` is what it runs: it reads the
model and `told.json` in its working directory, writes files there, and imports nothing of ours.
The room refuses to know how the model was made.
"""
