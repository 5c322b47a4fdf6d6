//! The data types of monitoring: [`sample`], the counters of an owner on a target; [`growth`], their growth
//! between two readings; [`event`], events such as a failed disk; [`batch`], a round of readings as an agent
//! sends it; and [`frame`], the encoding of a batch.

pub mod batch;
pub mod event;
pub mod frame;
pub mod growth;
pub mod sample;
