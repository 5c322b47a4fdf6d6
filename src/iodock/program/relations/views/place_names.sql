-- One row per place.
--
-- place: number of the location
-- name: the file's name, or the pattern of its files' names
-- single: whether the location is one file
-- file_count: number of files that the row represents
-- kind: kind of the files
-- folder: folder of one of the files
-- ending: ending of one of the files
-- mount_point: mount point of the files' file system; NULL if unknown
-- fs_type: its type
-- size_bytes: their total size; NULL if none is known
-- sized: files whose size is known

SELECT p.place, any_value(p.name) AS name, any_value(p.single) AS single,
  count(*) AS file_count, any_value(f.kind) AS kind, any_value(f.folder) AS folder,
  any_value(f.ending) AS ending,
  any_value(f.mount_point) AS mount_point, any_value(f.fs_type) AS fs_type,
  CAST(sum(f.size_bytes) AS BIGINT) AS size_bytes, count(f.size_bytes) AS sized
FROM places p JOIN files f ON f.file_id = p.file_id GROUP BY p.place
