"""Writes a day of a small ocean model's surface temperature as zarr with one chunk for each column of 10 x 10
cells."""

import numpy as np
import zarr

rng = np.random.default_rng(3)
field = zarr.create_array("sst.zarr", shape=(4, 500, 500), chunks=(4, 10, 10), dtype="f4")
data = (15 + rng.normal(0, 1, (4, 500, 500))).astype("f4")
field[:] = data
print(f"{data.mean():.4f}")
