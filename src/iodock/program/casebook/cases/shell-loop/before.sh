# Puts all records into one file, a cat for each of them.
while read F
do
    echo "<OTDoc><OTFile>$F</OTFile>"
    cat "$F"
    echo "</OTDoc>"
done < list > all.xml
cksum < all.xml
