"""Random calls of operators, whose results are the same on the CPU and on simulated GPUs: see docs/testing.md."""
