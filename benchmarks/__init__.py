"""Benchmarks of dither beside hand-written code, frameworks and Triton. `python -m benchmarks` runs all of them."""
