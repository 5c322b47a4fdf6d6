#!/bin/sh
# Sizes of all runs, for the weekly mail.
for run in results/*; do
    steps=$(ls "$run" | wc -l)
    bytes=$(cat "$run"/*.dat | wc -c)
    echo "${run#results/} $steps $bytes"
done
