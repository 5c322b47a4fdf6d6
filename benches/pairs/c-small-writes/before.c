/* Computes leapfrog steps of a small star cluster, and writes each star's state by a separate
 * call. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define STARS 48
#define STEPS 48000

struct star { double x[3], v[3]; };

static void step(struct star *stars, double dt)
{
    for (int i = 0; i < STARS; i++) {
        double r2 = 0.05;
        for (int k = 0; k < 3; k++)
            r2 += stars[i].x[k] * stars[i].x[k];
        for (int k = 0; k < 3; k++) {
            stars[i].v[k] -= dt * stars[i].x[k] / (r2 * sqrt(r2));
            stars[i].x[k] += dt * stars[i].v[k];
        }
    }
}

int main(void)
{
    struct star stars[STARS];
    double energy = 0;
    int out = open("orbits.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0)
        return 1;
    for (int i = 0; i < STARS; i++)
        for (int k = 0; k < 3; k++) {
            stars[i].x[k] = cos(1.3 * i + 2.1 * k);
            stars[i].v[k] = 0.4 * sin(0.7 * i + 1.9 * k);
        }
    for (int t = 0; t < STEPS; t++) {
        step(stars, 0.001);
        for (int i = 0; i < STARS; i++)
            if (write(out, &stars[i], sizeof stars[i]) != sizeof stars[i])
                return 1;
    }
    for (int i = 0; i < STARS; i++)
        for (int k = 0; k < 3; k++)
            energy += stars[i].v[k] * stars[i].v[k] / 2;
    close(out);
    printf("%.9f\n", energy);
    return 0;
}
