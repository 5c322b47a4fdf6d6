#!/bin/sh
# Sizes of all runs, for the weekly mail.
for folder in "$PWD"/software/*/lib; do
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
for run in results/*; do
    steps=$(ls "$run" | wc -l)
    bytes=$(cat "$run"/*.dat | wc -c)
    echo "${run#results/} $steps $bytes"
done
