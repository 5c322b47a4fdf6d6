#!/bin/sh
# The table by number, and the mean of its values.
sort -n table.txt > sorted.txt
awk '{ sum += $2 } END { printf "%.6f %d\n", sum / NR, NR }' sorted.txt
