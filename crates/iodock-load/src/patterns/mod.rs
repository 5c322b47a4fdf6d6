//! What workers do: one file a kind of pattern.

pub mod data;
pub mod metadata;
pub mod mixed;
