#!/bin/sh
# Good alignments by place, and how many there are for each chromosome: a pipe between the tools.
awk -F '\t' '$4 >= 20' alignments.txt | sort -k 2,2 -k 3,3n | cut -f 2 | uniq -c
