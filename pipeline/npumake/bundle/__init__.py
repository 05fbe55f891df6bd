"""The compiled file: an integer program, its packed weights and their provenance.

`program` holds the program as data, `archive` its deterministic ZIP. This room neither builds nor
runs programs.
"""
