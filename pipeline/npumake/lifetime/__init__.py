"""What outlives nothing: a process ends with the one that started it, a temporary is swept after.

parent        a process that ends with its parent; a command with all that it starts
supervisor    the process around such a command, in the standard library alone
temporaries   names that say whose they are, so that only those of the dead are removed

It refuses to know what is computed and what is stored."""
