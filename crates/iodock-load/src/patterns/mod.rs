//! Patterns that workers execute, with one file for each kind.

pub mod data;
pub mod metadata;
pub mod mixed;
