#!/bin/sh
# Tester for dither-reduce: exits with 1 while the file is interesting.
! grep -q "quant.transpose" "$1"
