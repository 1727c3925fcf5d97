"""A differential fuzzer of tile programs.

`generate` makes a kernel as text from a seed, `reference` runs the same text as plain Python over NumPy arrays,
`execute` compiles and launches it, and compares every byte. `docs/testing.md` says how to use it.
"""
