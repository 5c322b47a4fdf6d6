//! The store: a folder `NAME.iodock/` of Parquet tables and a manifest, which other tools can open too.
//! `docs/explanation/store.md` specifies it.
//!
//! [`StoreWriter`] writes a store. It writes tables to a temporary folder, then the manifest, and finally
//! renames the folder, so that a store exists as a whole or not at all. [`StoreInfo`] describes the content
//! of a store.

pub mod checksum;
mod chunk;
mod column;
mod contents;
mod copied;
mod dictionary;
mod encodings;
mod error;
mod events;
mod folds;
mod frame;
mod info;
mod manifest;
mod new_store;
pub mod own;
mod profiles;
mod reading;
mod schema;
mod stacks;
mod table;
mod tables;
mod writer;

pub use copied::{CopiedTable, TableCopy, COPIED};
pub use error::StoreError;
pub use info::StoreInfo;
pub use manifest::{
    Captured, Host, HostClock, InProgress, Io, Job, LossEntry, LossPlace, Manifest, Recorder, Source, State,
    SCHEMA_VERSION,
};
pub use profiles::{AccessRow, BinRow, Counts, HeatRow, LayoutRow, ProfileRow, ProfileTables, RankShare};
pub use reading::{shape, EventReader, Record, Records};
pub use stacks::{replace_symbols, SymbolRow};
pub use table::{Cell, TableWriter, Written};
pub use tables::{ExecutableRow, FaultRow, PagesRow};
pub use writer::{StoreOptions, StoreWriter};
