"""The store that remembers, and how a file is trusted.

A blob is bytes named by their SHA-256; a record says which blob a key document made.
Whatever is read back is verified first, whatever is written appears whole or not at all.
It refuses to know stages, graphs, YAML and what any of the bytes mean."""
