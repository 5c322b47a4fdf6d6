/* Computes, and prints every thousandth step. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    FILE *debug = fopen(argv[1], "w");
    long steps = atol(argv[2]);
    double value = 0.5;
    if (!debug)
        return 1;
    for (long step = 0; step < steps; step++) {
        for (long pass = 0; pass < 1500; pass++)
            value = 3.7 * value * (1 - value);
        if (step % 1000 == 0)
            fprintf(debug, "step %ld: value %g\n", step, value);
    }
    printf("%.12f\n", value);
    return fclose(debug);
}
