"""What was found about a model, as one HTML page that needs nothing else; and two builds compared.

    findings  what is told of one target: JSON      layout  where each node of the graph is drawn
    tensors   distributions and channels            shown   samples, and what both models see
    page      findings of every build → HTML        painted masks and maps of classes over these
    diff      two artifacts, or two builds

It computes what a person looks at, and refuses to decide anything by it. All text in a page is
data: names of nodes come from strangers, and page.js writes them as text, never as markup.
"""
