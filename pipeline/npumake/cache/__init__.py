"""The store of artifacts, and how files are trusted.

Every byte that a build reads is hashed into a key, or sealed (a digest over content and identity
that is checked on every read), or ignored:

    sources, inputs      hashed into the key; not read again while their signature is unchanged
    blobs, closures      named by their own digest
    records              named by their key; a seal binds digest and size of the blob
    plans, stamps        sealed with the project, the node and their inputs
    memo tables          sealed (files.json, sources.json, stages.json)
    current projects     sealed with the status of every file and folder that was looked at

A wrong seal is a miss. A blob is bytes named by their SHA-256; a record names the blob of a key
document. Every read is verified, and every write appears whole or not at all. This package knows no
stages, graphs or YAML.
"""
