//! Tracks processes, descriptors, offsets and paths: records in, events out, the same for every source.
