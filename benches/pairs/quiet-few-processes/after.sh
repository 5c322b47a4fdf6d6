#!/bin/sh
# Mean of the values over 10 of each month: one awk for all files.
awk 'FNR == 1 { if (name) printf "%s %.4f\n", name, sum / n; name = FILENAME; sum = n = 0 }
     $2 > 10 { sum += sqrt($2); n++ } END { printf "%s %.4f\n", name, sum / n }' month*.txt
