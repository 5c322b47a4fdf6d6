#!/bin/sh
# Fewer look-ups while importing: no user site, no check for newer sources.
exec python3 -s -X no_debug_ranges --check-hash-based-pycs never before.py
