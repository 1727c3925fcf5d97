"""dither in PyTorch: quantizers, recipes and modules.

Importing `dither` needs no torch; importing this package does.
"""
