"""The remote store: artifacts of other machines, fetched if that is faster than building them.

    address      a URL, and the credentials for it
    transport    three verbs over named bytes
    schemes      the transport of a URL: http, cloud or folder
    ledger       the time that the remote may cost a build, and the predicted time of a fetch
    envelope     a record and its signature, in a form that a stock bazel-remote accepts
    keys         the signing key: from a file, a variable or a command
    trust        which records are trusted
    layered      the near store in front of the far one
    outbox       pending uploads, across builds

A build without a remote imports none of it. Fetched bytes are never executed. Foreign records do
not enter the near store's own records: their envelopes are stored beside them and verified on every
read.
"""
