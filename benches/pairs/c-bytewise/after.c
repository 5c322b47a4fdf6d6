/* Computes the GC content of each contig of a FASTA file. */
#include <stdio.h>

static void report(const char *name, long gc, long bases)
{
    if (bases)
        printf("%s %.4f\n", name, (double)gc / bases);
}

int main(void)
{
    FILE *file = fopen("genome.fa", "r");
    char name[64] = "";
    long gc = 0, bases = 0;
    int in_name = 0, length = 0, c;
    if (!file)
        return 1;
    while ((c = getc(file)) != EOF) {
        if (c == '>') {
            report(name, gc, bases);
            in_name = 1;
            length = 0;
            gc = bases = 0;
        } else if (c == '\n') {
            in_name = 0;
        } else if (in_name) {
            if (length < 63)
                name[length++] = c;
            name[length] = 0;
        } else {
            bases++;
            gc += c == 'G' || c == 'C';
        }
    }
    report(name, gc, bases);
    fclose(file);
    return 0;
}
