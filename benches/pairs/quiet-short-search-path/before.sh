#!/bin/sh
# The table by number, and the mean of its values; eight modules are loaded.
for folder in "$PWD"/software/*/lib; do
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
sort -n table.txt > sorted.txt
awk '{ sum += $2 } END { printf "%.6f %d\n", sum / NR, NR }' sorted.txt
