#!/bin/sh
# Good alignments by place, and how many there are for each chromosome: files between the tools.
awk -F '\t' '$4 >= 20' alignments.txt > good.txt
sort -k 2,2 -k 3,3n good.txt > sorted.txt
cut -f 2 sorted.txt > places.txt
uniq -c places.txt
