//! Errors of merging stores.

use super::part::Part;
use crate::ImportError;

fn refused(message: String, hint: &str) -> ImportError {
    ImportError::Usage { message, hint: hint.into() }
}

pub fn too_few() -> ImportError {
    refused(
        "a merge needs at least two parts".into(),
        "give the stores of all nodes or ranks: iodock merge PART... -o STORE",
    )
}

pub fn unfinished(part: &str) -> ImportError {
    refused(
        format!("{part}: is still being recorded"),
        "wait for the recording to end, or end it: Ctrl-C or SIGTERM to iodock record",
    )
}

pub fn counts_only(part: &str) -> ImportError {
    refused(format!("{part}: holds counts by call only (strace -c), which can't be merged"), "leave it out")
}

pub fn damaged(error: &iodock_store::StoreError) -> ImportError {
    ImportError::Store {
        message: error.to_string(),
        hint: "copy the part again, or leave it out: the missing part is then named".into(),
    }
}

pub fn twice(part: &Part, first: &Part) -> ImportError {
    let (part, first) = (part.name(), first.name());
    refused(format!("{part}: is the same part as {first}"), "give each part once")
}

pub fn rank_twice(part: &Part, first: &Part, rank: i32) -> ImportError {
    let (part, first) = (part.name(), first.name());
    refused(format!("{part}: rank {rank} is in {first}, too"), "name the log of each rank only once")
}

/// The property in which two parts differ, with both values.
pub enum Different {
    Job(String, String),
    Launch(String, String),
    Clock(String, String),
    Ranks(u32, u32),
    /// The difference of the times, in seconds.
    Time(i64),
}

pub fn of_another_run(part: &Part, first: &Part, why: Different) -> ImportError {
    let (part, first) = (part.name(), first.name());
    let message = match why {
        Different::Job(job, other) => {
            format!("{part}: is of another run than {first}: its job is {job}, not {other}")
        }
        Different::Launch(launch, other) => {
            format!("{part}: is of another run than {first}: its launch is {launch}, not {other}")
        }
        Different::Clock(clock, other) => {
            format!("{part}: is of another run than {first}: its clock is {clock}, not {other}")
        }
        Different::Ranks(ranks, other) => {
            format!("{part}: is of another run than {first}: it has {ranks} ranks, not {other}")
        }
        Different::Time(seconds) => {
            format!(
                "{part}: is of another run than {first}: it begins {seconds} s after the end of the other"
            )
        }
    };
    refused(message, "give the parts of one run; iodock diff compares runs")
}

pub fn too_many() -> ImportError {
    ImportError::Store {
        message: "the parts together have more rows than ids of 32 bits can number".into(),
        hint: "merge fewer parts".into(),
    }
}
