"""The remote store: what other machines made, fetched when that is cheaper than making it.

    address      a URL, and which credentials may go there
    transport    three verbs over named bytes; http, cloud and folder speak them
    ledger       how much time the remote may cost a build, and what a fetch is predicted to take
    envelope     a record and its signature, in the form that a stock bazel-remote accepts
    keys         the signing key: from a file, a variable or a command
    trust        whose records are read
    layered      the near store in front of the far one
    outbox       what is still to be uploaded, across builds

A build without a remote imports none of it. Nothing that is fetched is executed, and no record of
a stranger enters the near store's own records: its envelope is kept beside them and judged anew
each time it is read."""
