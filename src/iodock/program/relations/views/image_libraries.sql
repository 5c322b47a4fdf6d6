-- The libraries and run-time libraries that each image uses.
--
-- image: -> images
-- library: HDF5, NetCDF, MPI-IO, h5py, numpy, pandas or zarr
-- language: belongs to a run-time library: C++, Fortran or Python

-- The loader opens a program's direct dependencies before the dependencies of these libraries. The C library
-- is the last direct dependency, so libraries that are opened after it are indirect ones.
WITH opened AS (SELECT i.image, f.name, min(u.first_ts) AS ts FROM uses u
    JOIN files f ON f.file_id = u.file_id JOIN calls c ON c.id = u.call_id JOIN processes p ON p.utid = u.utid
    JOIN images i ON i.upid = p.upid
      AND coalesce(u.first_ts, 9000000000000000000) >= coalesce(i.from_ts, -9000000000000000000)
      AND (i.until_ts IS NULL OR u.first_ts < i.until_ts)
  WHERE c.family = 'open' AND u.errno_id IS NULL AND u.direction = 0
    AND regexp_matches(f.name, '/lib[^/]*\.so|/(site|dist)-packages/|/python[0-9.]*/') GROUP BY ALL),
needed AS (SELECT DISTINCT i.image, unnest(e.libraries) AS name FROM images i
    JOIN executables e ON e.path = i.path),
libc AS (SELECT image, min(ts) AS ts FROM opened WHERE regexp_matches(name, '/libc[.-][^/]*$') GROUP BY image)
SELECT DISTINCT image, CASE
    WHEN regexp_matches(name, '(^|/)libhdf5[^/]*$') THEN 'HDF5'
    WHEN regexp_matches(name, '(^|/)libnetcdf[^/]*$') THEN 'NetCDF'
    WHEN regexp_matches(name, '(^|/)lib(f?mpi|mpich|mpi_[^/]*)([.-][^/]*)?$') THEN 'MPI-IO'
    WHEN regexp_matches(name, '/(site|dist)-packages/h5py/') THEN 'h5py'
    WHEN regexp_matches(name, '/(site|dist)-packages/numpy/') THEN 'numpy'
    WHEN regexp_matches(name, '/(site|dist)-packages/pandas/') THEN 'pandas'
    WHEN regexp_matches(name, '/(site|dist)-packages/zarr/') THEN 'zarr' END AS library,
  CAST(NULL AS VARCHAR) AS language
FROM (SELECT image, name FROM opened UNION ALL SELECT image, name FROM needed) WHERE library IS NOT NULL
UNION ALL SELECT DISTINCT o.image, NULL, CASE
    WHEN regexp_matches(o.name, '/libpython|/python3?(\.[0-9]+)?/|/site-packages/') THEN 'Python'
    WHEN regexp_matches(o.name, '/libgfortran[^/]*\.so|/libifcore|/libflang|/libfj90') THEN 'Fortran'
    WHEN regexp_matches(o.name, '/libstdc\+\+[^/]*\.so|/libc\+\+\.so') THEN 'C++' END AS language
  FROM opened o LEFT JOIN libc l ON l.image = o.image
WHERE language IS NOT NULL AND (language = 'Python' OR coalesce(o.ts <= l.ts, true))
