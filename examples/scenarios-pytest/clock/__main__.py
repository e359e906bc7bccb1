"""Prints seconds for people."""

import sys

print(f"{sys.argv[1]}s")
