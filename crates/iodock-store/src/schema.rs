//! The columns of all tables, as described in `docs/explanation/store.md`.

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};
use std::sync::Arc;

pub const EVENTS: &str = "message events {
    optional int64 ts;
    optional int64 end_ts;
    optional int64 dur;
    optional int64 sys_cpu_ns;
    required int32 call_id (INTEGER(16,false));
    optional int32 errno_id (INTEGER(16,false));
    optional int64 result;
    required int32 utid (INTEGER(32,false));
    optional int32 file_id (INTEGER(32,false));
    optional int32 other_file_id (INTEGER(32,false));
    required int32 side (INTEGER(8,false));
    optional int64 requested_bytes;
    optional int64 offset_bytes;
    optional int64 bytes;
    required int32 direction (INTEGER(8,false));
    optional int32 fd;
    optional int32 handle_id (INTEGER(32,false));
    optional int32 flags (INTEGER(32,false));
    required int32 pattern (INTEGER(8,false));
    optional int64 gap_bytes;
    optional int64 own_read_bytes;
    optional int64 any_read_bytes;
    optional int64 own_written_bytes;
    optional int64 any_written_bytes;
    optional int32 interface_call_id (INTEGER(32,false));
    optional int32 site_id (INTEGER(32,false));
    optional int32 stack_id (INTEGER(32,false));
}";

pub const INTERFACE_CALLS: &str = "message interface_calls {
    required int32 id (INTEGER(32,false));
    optional int32 parent_id (INTEGER(32,false));
    required int32 utid (INTEGER(32,false));
    required binary interface (STRING);
    required binary call (STRING);
    required boolean is_collective;
    required int32 direction (INTEGER(8,false));
    optional int32 file_id (INTEGER(32,false));
    optional int32 handle_id (INTEGER(32,false));
    required int64 ts;
    optional int64 end_ts;
    optional int64 dur;
    optional int64 result;
    optional int64 requested_bytes;
    optional int64 offset_bytes;
    optional int64 calls;
}";

pub const HINTS: &str = "message hints {
    required int32 interface_call_id (INTEGER(32,false));
    required binary key (STRING);
    optional binary asked (STRING);
    optional binary taken (STRING);
}";

pub const DATASETS: &str = "message datasets {
    required int32 interface_call_id (INTEGER(32,false));
    required int32 handle_id (INTEGER(32,false));
    optional int32 file_id (INTEGER(32,false));
    required binary name (STRING);
    optional binary layout (STRING);
    optional int64 element_bytes;
    optional binary extent (STRING);
    optional binary chunk (STRING);
    optional int64 chunk_bytes;
    optional binary filters (STRING);
}";

pub const FILES: &str = "message files {
    required int32 file_id (INTEGER(32,false));
    required binary name (STRING);
    optional binary name_raw;
    required binary kind (STRING);
    required boolean relative;
    required binary folder (STRING);
    required binary ending (STRING);
    required binary pattern (STRING);
    optional binary mount_point (STRING);
    optional binary fs_type (STRING);
    optional int64 size_bytes;
    optional binary host (STRING);
}";

pub const PROCESSES: &str = "message processes {
    required int32 utid (INTEGER(32,false));
    required int32 upid (INTEGER(32,false));
    optional binary host (STRING);
    optional int32 rank;
    required int32 pid;
    required int32 tid;
    required int32 generation;
    optional int32 parent_utid (INTEGER(32,false));
    optional int32 parent_pid;
    required binary how (STRING);
    optional int64 start_ts;
    optional int64 end_ts;
    optional int32 exit_code;
    optional binary exit_signal (STRING);
    required boolean core_dumped;
    optional int64 cpu_user_ns;
    optional int64 cpu_system_ns;
    optional int64 io_ns;
    optional int64 waiting_ns;
}";

pub const COMMANDS: &str = "message commands {
    required int32 utid (INTEGER(32,false));
    optional int64 ts;
    required binary path (STRING);
    required group argv (LIST) { repeated group list { required binary element (STRING); } }
}";

pub const CALLS: &str = "message calls {
    required int32 id (INTEGER(16,false));
    required binary name (STRING);
    required binary family (STRING);
    required binary class (STRING);
}";

pub const ERRNOS: &str = "message errnos {
    required int32 id (INTEGER(16,false));
    required binary name (STRING);
}";

pub const CALL_TOTALS: &str = "message call_totals {
    required int32 call_id (INTEGER(16,false));
    optional int64 calls;
    optional int64 errors;
    optional int64 time_ns;
    optional int64 min_time_ns;
    optional int64 max_time_ns;
    optional int64 sys_cpu_ns;
    optional int64 min_sys_cpu_ns;
    optional int64 max_sys_cpu_ns;
}";

pub const MOUNTS: &str = "message mounts {
    required binary mount_point (STRING);
    required binary fs_type (STRING);
    required binary source (STRING);
    required binary options (STRING);
    optional binary host (STRING);
}";

pub const EXECUTABLES: &str = "message executables {
    required binary path (STRING);
    optional binary real_path (STRING);
    required binary kind (STRING);
    optional binary interpreter (STRING);
    required group languages (LIST) { repeated group list { required binary element (STRING); } }
    required group libraries (LIST) { repeated group list { required binary element (STRING); } }
}";

pub const SITES: &str = "message sites {
    required int32 site_id (INTEGER(32,false));
    optional binary module (STRING);
    optional binary build_id (STRING);
    optional int64 offset_bytes;
    required boolean is_installed;
}";

pub const STACKS: &str = "message stacks {
    required int32 stack_id (INTEGER(32,false));
    required int32 depth (INTEGER(16,false));
    required int32 site_id (INTEGER(32,false));
}";

pub const SYMBOLS: &str = "message symbols {
    required int32 site_id (INTEGER(32,false));
    required int32 level (INTEGER(16,false));
    optional binary function (STRING);
    optional binary file (STRING);
    optional int32 line (INTEGER(32,false));
}";

pub const SAMPLES: &str = "message samples {
    required int64 ts;
    optional binary host (STRING);
    required binary source (STRING);
    required binary target (STRING);
    required binary metric (STRING);
    required double value;
    required binary kind (STRING);
}";

pub const FAULTS: &str = "message faults {
    required int64 ts;
    required int32 utid (INTEGER(32,false));
    required int32 file_id (INTEGER(32,false));
    required int64 offset_bytes;
    optional boolean is_major;
}";

pub const PAGES: &str = "message pages {
    required int64 ts;
    required int64 end_ts;
    required int32 utid (INTEGER(32,false));
    required int32 file_id (INTEGER(32,false));
    required int64 offset_bytes;
    required int64 bytes;
    optional boolean is_written;
}";

pub const PROFILES: &str = "message profiles {
    required int32 profile_id (INTEGER(32,false));
    optional binary job (STRING);
    optional binary host (STRING);
    optional int32 rank;
    optional int32 ranks;
    optional int32 upid (INTEGER(32,false));
    optional int32 file_id (INTEGER(32,false));
    optional binary pattern (STRING);
    optional int64 files;
    optional int32 parent_file_id (INTEGER(32,false));
    required binary interface (STRING);
    optional int64 opens;
    optional int64 reads;
    optional int64 writes;
    optional int64 seeks;
    optional int64 stats;
    optional int64 syncs;
    optional int64 read_bytes;
    optional int64 written_bytes;
    optional int64 read_time_ns;
    optional int64 write_time_ns;
    optional int64 meta_time_ns;
    optional int64 first_ts;
    optional int64 last_ts;
    optional int32 fastest_rank;
    optional int64 fastest_bytes;
    optional int64 fastest_time_ns;
    optional int32 slowest_rank;
    optional int64 slowest_bytes;
    optional int64 slowest_time_ns;
    optional double variance_bytes;
    optional double variance_time_s2;
    required group estimated (LIST) { repeated group list { required binary element (STRING); } }
}";

pub const PROFILE_COUNTERS: &str = "message profile_counters {
    required int32 profile_id (INTEGER(32,false));
    required binary counter (STRING);
    optional int64 value;
    optional double fraction;
}";

pub const PROFILE_FIELDS: &str = "message profile_fields {
    required binary interface (STRING);
    required binary counter (STRING);
}";

pub const HISTOGRAMS: &str = "message histograms {
    required int32 profile_id (INTEGER(32,false));
    required binary quantity (STRING);
    required int64 low;
    optional int64 high;
    optional int64 count;
    optional int64 bytes;
}";

pub const LAYOUTS: &str = "message layouts {
    required int32 file_id (INTEGER(32,false));
    optional int32 rank;
    required int32 component;
    optional int64 stripe_bytes;
    optional int64 stripe_count;
    optional int64 start_bytes;
    optional int64 end_bytes;
    optional binary pool (STRING);
    required group targets (LIST) { repeated group list { required binary element (STRING); } }
    optional int64 file_system_targets;
}";

pub const PROFILE_ACCESSES: &str = "message profile_accesses {
    required int32 file_id (INTEGER(32,false));
    required binary interface (STRING);
    optional int32 rank;
    optional binary host (STRING);
    optional int64 thread;
    required boolean is_write;
    optional int64 offset_bytes;
    optional int64 bytes;
    optional int64 ts;
    optional int64 dur;
}";

pub const HEATMAPS: &str = "message heatmaps {
    optional binary interface (STRING);
    optional int32 rank;
    optional int64 ts;
    optional int64 end_ts;
    optional int64 read_bytes;
    optional int64 written_bytes;
}";

/// Compression level, chosen after a measurement with 6 million rows of a mixed program. Level 3 makes events
/// 6 % smaller (13.5 instead of 14.4 bytes per row), but takes 20 % longer (147 instead of 124 ns per row),
/// which is too slow for import.
pub const ZSTD_LEVEL: i32 = 1;

/// A parsed schema and the properties for writing it.
#[derive(Clone)]
pub struct Schema {
    pub root: TypePtr,
    pub descriptor: SchemaDescPtr,
    pub properties: WriterPropertiesPtr,
    /// Properties for row groups of a few rows. Creating a compressor per column would take most of their
    /// time.
    pub uncompressed: WriterPropertiesPtr,
}

impl Schema {
    pub fn of_table(message: &str) -> Result<Schema> {
        let descriptor = describe(message)?;
        let compression = Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?);
        Ok(Schema {
            root: descriptor.root_schema_ptr(),
            descriptor,
            properties: Arc::new(properties(compression)),
            uncompressed: Arc::new(properties(Compression::UNCOMPRESSED)),
        })
    }
}

fn describe(message: &str) -> Result<SchemaDescPtr> {
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(message)?))))
}

fn properties(compression: Compression) -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_created_by(concat!("iodock ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(compression)
        // Query engines use the minimum and maximum of a row group to skip groups.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        // Names differ in every row, so a dictionary would not help.
        .set_column_dictionary_enabled("name".into(), false);
    builder.build()
}
