"""The compiled file: an integer program, its packed weights and where they came from.

`program` is the program as data, `archive` its deterministic ZIP. The room refuses to know how a
program is made or executed.
"""
