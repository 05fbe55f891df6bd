"""Lifetimes: processes end with their parent, and temporary files are removed.

parent        a process that ends with its parent; a command with all its children
supervisor    the process around such a command, with the standard library only
temporaries   names that identify their process, so that only those of dead ones are removed
"""
