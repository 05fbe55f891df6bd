"""The store that remembers, and how a file is trusted.

Every byte that a build reads is hashed into a key, or sealed (a digest over content and identity
that is checked when it is read), or not believed:

    sources, inputs      hashed into the key; unread only while their signature is the recorded one
    blobs, closures      named by their own digest
    records              named by their key; a seal binds digest and size of the blob
    plans, stamps        sealed with the project, the node and what they were made from
    memo tables          sealed (files.json, sources.json, stages.json)

A wrong seal is a miss. A blob is bytes named by their SHA-256; a record says which blob a key
document made.
Whatever is read back is verified first, whatever is written appears whole or not at all.
It refuses to know stages, graphs, YAML and what any of the bytes mean."""
