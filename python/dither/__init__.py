"""Fused quantize kernels: a tile language in Python and its compiler."""
