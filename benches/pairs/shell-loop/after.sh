#!/bin/sh
# Names and read counts of the samples of lane 3.
awk -F '\t' '$2 == "lane3" { print $1, $3 }' samples.tsv > lane3.txt
cat lane3.txt
