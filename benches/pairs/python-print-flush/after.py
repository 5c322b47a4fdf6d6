"""Evaluates the candidates of a genetic algorithm, and logs each."""

import random

chance = random.Random(77)
best = 0.0
with open("evolution.log", "w") as log:
    for candidate in range(200_000):
        fitness = 1.0 - abs(chance.gauss(0, 0.3))
        best = max(best, fitness)
        print(candidate, f"{fitness:.6f}", f"{best:.6f}", file=log)
print(f"{best:.9f}")
