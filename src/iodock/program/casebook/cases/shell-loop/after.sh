# Puts all records into one file, in one awk.
awk '{
    f = $0
    printf("<OTDoc><OTFile>%s</OTFile>\n", f)
    while ((getline u < f) > 0) printf("%s\n", u)
    close(f)
    printf("</OTDoc>\n")
}' list > all.xml
cksum < all.xml
