"""Computes the trend of a temperature series with pandas. Importing pandas is a one-off cost."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
dates = pd.date_range("1950-01-01", periods=27_000)
series = pd.Series(10 + 1e-4 * np.arange(27_000) + rng.normal(0, 3, 27_000), index=dates)
trends = []
for sample in range(60):
    chosen = series.sample(5000, random_state=sample).sort_index()
    months = chosen.groupby([chosen.index.year, chosen.index.month]).mean()
    trends.append(np.polyfit(np.arange(len(months)), months.to_numpy(), 1)[0])
print(f"{np.mean(trends):.6f}")
