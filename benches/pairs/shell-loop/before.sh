#!/bin/sh
# Names and read counts of the samples of lane 3.
while read -r line; do
    lane=$(echo "$line" | cut -f 2)
    if [ "$lane" = lane3 ]; then
        name=$(echo "$line" | cut -f 1)
        reads=$(echo "$line" | cut -f 3)
        echo "$name $reads" >> lane3.txt
    fi
done < samples.tsv
cat lane3.txt
