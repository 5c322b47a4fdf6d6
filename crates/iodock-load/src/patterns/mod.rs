//! What workers do: one file for each kind of pattern.

pub mod data;
pub mod metadata;
pub mod mixed;
