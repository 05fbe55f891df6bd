"""What a compiled model costs on its chip: operations, bytes, and the latency they allow.

An estimate from a program and the published figures of a target, or Vela's where Vela compiled. The
room refuses to know how a model is run, and measures nothing: `npumake bench` does.
"""
