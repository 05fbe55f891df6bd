"""Compilers that cannot share npumake's interpreter: each runs in its own, if there is one.

An environment variable names the interpreter, which runs a script of `scripts/`. The script reads
the model and `options.json` in its working directory, writes files there, and imports nothing of
npumake. This room does not know the origin of the model.
"""
