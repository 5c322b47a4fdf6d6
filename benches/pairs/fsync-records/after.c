/* Writes the run log of a beam line, and syncs it after every 50 shots. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    FILE *log = fopen("shots.log", "w");
    double charge = 1.0, sum = 0;
    if (!log)
        return 1;
    for (int shot = 0; shot < 400; shot++) {
        for (int turn = 0; turn < 500; turn++)
            charge = fabs(sin(charge * 12.9898 + turn));
        sum += charge;
        fprintf(log, "%06d %.9f\n", shot, charge);
        if (shot % 50 == 49) {
            fflush(log);
            fsync(fileno(log));
        }
    }
    fclose(log);
    printf("%.6f\n", sum);
    return 0;
}
