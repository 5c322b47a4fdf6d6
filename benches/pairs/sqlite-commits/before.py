"""Inserts results of docking runs into a database, and commits each row."""

import random
import sqlite3

chance = random.Random(61)
with sqlite3.connect("docking.db") as base:
    base.execute("CREATE TABLE results (ligand TEXT, score REAL)")
    for ligand in range(150):
        base.execute("INSERT INTO results VALUES (?, ?)", (f"ZINC{ligand:08d}", chance.gauss(-7, 1.5)))
        base.commit()
    (mean,) = base.execute("SELECT avg(score) FROM results").fetchone()
print(f"{mean:.6f}")
