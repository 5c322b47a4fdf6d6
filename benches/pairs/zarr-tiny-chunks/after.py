"""Writes a day of a small ocean model's surface temperature as zarr with four chunks."""

import numpy as np
import zarr

rng = np.random.default_rng(3)
field = zarr.create_array("sst.zarr", shape=(4, 500, 500), chunks=(4, 250, 250), dtype="f4")
data = (15 + rng.normal(0, 1, (4, 500, 500))).astype("f4")
field[:] = data
print(f"{data.mean():.4f}")
