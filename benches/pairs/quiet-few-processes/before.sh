#!/bin/sh
# Mean of the values over 10 of each month: an awk for each file.
for file in month*.txt; do
    awk '$2 > 10 { sum += sqrt($2); n++ } END { printf "%s %.4f\n", FILENAME, sum / n }' "$file"
done
