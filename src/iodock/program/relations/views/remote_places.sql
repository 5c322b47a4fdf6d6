-- Places on network and parallel file systems.
--
-- place: -> place_names

SELECT place FROM place_names WHERE mount_point IN ({remote_mounts})
