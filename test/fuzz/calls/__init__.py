"""Random sequences of launches, prepared launches and changes of what kernels capture, against a model in NumPy."""
