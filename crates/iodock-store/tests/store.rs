//! Tests round trips, empty stores, refused operations, damage and a full disk.

use iodock_event::event::EventRow;
use iodock_event::interfaces::InterfaceRow;
use iodock_event::tables::{FileEntry, MountPoint, TaskRow, NO_INDEX};
use iodock_event::{
    EventColumns, FileKind, FirstLoss, LossKind, Losses, Mount, Sample, SampleKind, Site, Tables, TaskOrigin,
    NONE, NO_FD, UNKNOWN,
};
use iodock_store::{LossEntry, Manifest, State, StoreError, StoreInfo, StoreOptions, StoreWriter, SymbolRow};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::{Field, Row};
use std::fs;
use std::path::{Path, PathBuf};

const NEW: StoreOptions = StoreOptions { force: false, complete: false };
const FORCE: StoreOptions = StoreOptions { force: true, complete: false };
const COMPLETE: StoreOptions = StoreOptions { force: false, complete: true };

/// A folder for one test, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iodock-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }
    fn store(&self) -> PathBuf {
        self.0.join("run.iodock")
    }
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn null_row() -> EventRow {
    EventRow::BLANK
}

/// Returns a row with the largest value that is not null in every column.
fn full_row() -> EventRow {
    let most = i64::MAX;
    EventRow {
        ts: most,
        end_ts: most,
        dur: most,
        sys_cpu: most,
        call: u16::MAX,
        errno: u16::MAX - 1,
        result: most,
        utid: u32::MAX,
        file: u32::MAX - 1,
        other_file: u32::MAX - 1,
        side: 4,
        requested: most,
        offset: most,
        bytes: most,
        direction: 2,
        fd: i32::MAX,
        handle: u32::MAX - 1,
        flags: u32::MAX - 1,
        pattern: 7,
        gap: i64::MIN + 1,
        own_read: most,
        any_read: most,
        own_written: most,
        any_written: most,
        interface_call: u32::MAX - 1,
        site: u32::MAX - 1,
        stack: u32::MAX - 1,
    }
}

/// Returns row `index` of a run in which every column is sometimes null.
fn some_row(index: i64) -> EventRow {
    let sparse = |every: i64, value: i64| if index % every == 0 { value } else { UNKNOWN };
    EventRow {
        ts: 1_700_000_000_000_000_000 + index * 1000,
        dur: sparse(2, index),
        errno: if index % 5 == 0 { 1 } else { u16::MAX },
        result: index * 7919 % 100_003,
        utid: (index % 64) as u32,
        file: if index % 3 == 0 { NONE } else { (index * 31 % 300_000) as u32 },
        offset: sparse(3, -index),
        bytes: sparse(4, 4096),
        gap: sparse(1000, index),
        site: if index % 7 == 0 { NONE } else { (index % 11) as u32 },
        stack: if index % 7 == 0 { NONE } else { (index % 400) as u32 },
        ..null_row()
    }
}

fn columns(rows: impl Iterator<Item = EventRow>) -> EventColumns {
    let mut columns = EventColumns::default();
    rows.for_each(|row| columns.push(&row));
    columns
}

fn tables() -> Tables {
    let mut tables =
        Tables { hosts: vec!["n1".into()], signals: vec!["SIGKILL".into()], ..Tables::default() };
    tables.files.mounts.push(MountPoint { mount_point: "/d".into(), fs_type: "ext4".into() });
    tables.files.patterns.push("/d/*.dat".into());
    let entry = FileEntry { size: 9, pattern: 0, mount: 0, host: 0, ..FileEntry::new(FileKind::Regular) };
    tables.files.push(b"/d/a\xff\n.dat", entry);
    tables.files.push(b"stdin", FileEntry::new(FileKind::Standard));
    let root = TaskRow {
        upid: 0,
        host: NO_INDEX,
        exit_signal: NO_INDEX,
        rank: None,
        pid: 1,
        tid: 1,
        generation: 0,
        parent_utid: NONE,
        parent_pid: None,
        how: TaskOrigin::Root,
        core_dumped: false,
        exit_code: Some(0),
        start: UNKNOWN,
        end: 7,
        cpu_user: UNKNOWN,
        cpu_system: 3,
    };
    tables.tasks.push(root);
    let child = TaskRow { parent_utid: 0, exit_signal: 0, host: 0, rank: Some(2), exit_code: None, ..root };
    tables.tasks.push(child);
    let path = tables.commands.add_text(b"/bin/\xe9");
    let argv = tables.commands.add_text(b"a\0\0c");
    tables.commands.push(0, 5, path, argv);
    tables.commands.push(1, UNKNOWN, path, NONE);
    tables
}

fn write(path: &Path, options: StoreOptions, rows: i64) -> Result<PathBuf, StoreError> {
    let mut writer = StoreWriter::create(path, options)?;
    for start in (0..rows).step_by(50_000) {
        writer.write_events(columns((start..rows.min(start + 50_000)).map(some_row)))?;
    }
    writer.finish(&tables(), Manifest::default())
}

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn fields(row: &Row) -> Vec<Field> {
    row.get_column_iter().map(|(_, field)| field.clone()).collect()
}

fn wide(value: i64) -> Field {
    if value == UNKNOWN {
        Field::Null
    } else {
        Field::Long(value)
    }
}

fn id(value: u32) -> Field {
    if value == NONE {
        Field::Null
    } else {
        Field::UInt(value)
    }
}

fn expected(row: &EventRow) -> Vec<Field> {
    let errno = if row.errno == u16::MAX { Field::Null } else { Field::UShort(row.errno) };
    let fd = if row.fd == NO_FD { Field::Null } else { Field::Int(row.fd) };
    vec![
        wide(row.ts),
        wide(row.end_ts),
        wide(row.dur),
        wide(row.sys_cpu),
        Field::UShort(row.call),
        errno,
        wide(row.result),
        Field::UInt(row.utid),
        id(row.file),
        id(row.other_file),
        Field::UByte(row.side),
        wide(row.requested),
        wide(row.offset),
        wide(row.bytes),
        Field::UByte(row.direction),
        fd,
        id(row.handle),
        id(row.flags),
        Field::UByte(row.pattern),
        wide(row.gap),
        wide(row.own_read),
        wide(row.any_read),
        wide(row.own_written),
        wide(row.any_written),
        id(row.interface_call),
        id(row.site),
        id(row.stack),
    ]
}

#[test]
fn nulls_and_extreme_values_are_read_back() {
    let folder = Folder::new("extremes");
    let mut writer = StoreWriter::create(folder.store(), NEW).unwrap();
    let written = [null_row(), full_row(), some_row(0), some_row(1), null_row()];
    writer.write_events(columns(written.into_iter())).unwrap();
    writer.finish(&Tables::default(), Manifest::default()).unwrap();
    let read = rows(&folder.store().join("events/part-00000.parquet"));
    assert_eq!(read.iter().map(fields).collect::<Vec<_>>(), written.iter().map(expected).collect::<Vec<_>>());
}

#[test]
#[ignore = "part of `make test-all`: a million rows, which take seconds"]
fn many_rows_are_read_back_in_order() {
    let folder = Folder::new("many");
    let count = 1_060_000;
    write(&folder.store(), NEW, count).unwrap();
    let path = folder.store().join("events/part-00000.parquet");
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    let statistics = reader.metadata().row_group(1).column(0).statistics().unwrap();
    assert!(statistics.min_bytes_opt().is_some(), "engines skip row groups by these");
    let mut seen = 0;
    for (index, row) in reader.get_row_iter(None).unwrap().enumerate() {
        seen += 1;
        if index % 997 == 0 || index > 1_048_000 && index < 1_050_000 {
            assert_eq!(fields(&row.unwrap()), expected(&some_row(index as i64)), "{index}");
        }
    }
    assert_eq!(seen, count);
    let info = StoreInfo::open(folder.store()).unwrap();
    assert_eq!(info.manifest.tables["events"], count as u64);
    assert_eq!(info.manifest.first_ts, Some(some_row(0).ts));
    assert_eq!(info.manifest.last_ts, (0..count).map(|at| some_row(at).ts + some_row(at).dur.max(0)).max());
}

/// Generates numbers of all magnitudes, some of them null. The same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 31
    }
    fn wide(&mut self) -> i64 {
        let shift = self.next() % 64;
        self.next() as i64 >> shift
    }
    fn narrow(&mut self) -> u32 {
        let shift = self.next() % 32;
        self.next() as u32 >> shift
    }
    fn row(&mut self) -> EventRow {
        EventRow {
            ts: self.wide(),
            end_ts: self.wide(),
            dur: self.wide(),
            sys_cpu: self.wide(),
            call: self.narrow() as u16,
            errno: self.narrow() as u16,
            result: self.wide(),
            utid: self.narrow(),
            file: self.narrow(),
            other_file: self.narrow(),
            side: self.narrow() as u8,
            requested: self.wide(),
            offset: self.wide(),
            bytes: if self.next().is_multiple_of(2) { self.wide() } else { UNKNOWN },
            direction: self.narrow() as u8,
            fd: self.narrow() as i32,
            handle: self.narrow(),
            flags: self.narrow(),
            pattern: self.narrow() as u8,
            gap: if self.next().is_multiple_of(9) { self.wide() } else { UNKNOWN },
            own_read: self.wide(),
            any_read: self.wide(),
            own_written: self.wide(),
            any_written: self.wide(),
            interface_call: self.narrow(),
            site: self.narrow(),
            stack: self.narrow(),
        }
    }
}

#[test]
fn arbitrary_numbers_are_read_back() {
    let folder = Folder::new("any");
    for (seed, count) in
        [1, 2, 7, 8, 9, 31, 32, 33, 34, 127, 128, 129, 130, 257, 9000].into_iter().enumerate()
    {
        let mut random = Random(seed as u64);
        let written: Vec<EventRow> = (0..count).map(|_| random.row()).collect();
        let mut writer = StoreWriter::create(folder.store(), FORCE).unwrap();
        writer.write_events(columns(written.iter().copied())).unwrap();
        writer.finish(&Tables::default(), Manifest::default()).unwrap();
        let read = rows(&folder.store().join("events/part-00000.parquet"));
        assert_eq!(read.len(), count);
        for (read, written) in read.iter().zip(&written) {
            assert_eq!(fields(read), expected(written));
        }
    }
}

/// Writes a page that fits the dictionary, then one that does not, in the same row group.
#[test]
fn a_column_may_abandon_its_dictionary_midway() {
    let folder = Folder::new("midway");
    let mut random = Random(1);
    let repeating =
        (0..40_000).map(some_row).map(|row| EventRow { file: row.utid, result: row.ts % 3, ..row });
    let written: Vec<EventRow> = repeating.chain((0..40_000).map(|_| random.row())).collect();
    let mut writer = StoreWriter::create(folder.store(), NEW).unwrap();
    for page in written.chunks(40_000) {
        writer.write_events(columns(page.iter().copied())).unwrap();
    }
    writer.finish(&Tables::default(), Manifest::default()).unwrap();
    let path = folder.store().join("events/part-00000.parquet");
    for (read, written) in rows(&path).iter().zip(&written) {
        assert_eq!(fields(read), expected(written));
    }
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let group = reader.metadata().row_group(0);
    let Statistics::Int64(result) = group.column(6).statistics().unwrap() else { panic!("result is int64") };
    let (least, most) =
        (written.iter().map(|row| row.result).min(), written.iter().map(|row| row.result).max());
    assert_eq!((result.min_opt().copied(), result.max_opt().copied()), (least, most));
    let Statistics::Int32(file) = group.column(8).statistics().unwrap() else { panic!("file_id is int32") };
    let ids = || written.iter().map(|row| row.file).filter(|&file| file != NONE);
    assert_eq!(file.max_opt().map(|&most| most as u32), ids().max());
    assert_eq!(file.min_opt().map(|&least| least as u32), ids().min());
}

/// Runs only if the Python environment exists.
#[test]
fn other_engines_read_the_same_values() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if !python.exists() {
        eprintln!("skipped: no {}", python.display());
        return;
    }
    let folder = Folder::new("engines");
    write(&folder.store(), NEW, 200_000).unwrap();
    let script = "\
import sys, duckdb, pyarrow.parquet as pq
path = sys.argv[1] + '/events/part-00000.parquet'
columns = 'result', 'dur', 'file_id', 'offset_bytes', 'bytes', 'utid', 'errno_id', 'gap_bytes'
table = pq.read_table(path)
arrow = [sum(value for value in table[name].to_pylist() if value is not None) for name in columns]
sums = ', '.join(f'sum({name})::int64' for name in columns)
duck = duckdb.sql(f\"select {sums} from '{path}'\").fetchall()[0]
assert list(duck) == arrow, (duck, arrow)
assert duckdb.sql(f\"select count(*) from '{path}' where file_id is null and dur is null\").fetchall()[0][0] > 0
argv = duckdb.sql(f\"select argv from '{sys.argv[1]}/commands.parquet' order by utid\").fetchall()
assert argv == [(['a', '', 'c'],), ([],)], argv
print(*arrow)
";
    let output =
        std::process::Command::new(python).args(["-c", script]).arg(folder.store()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sum =
        |field: fn(&EventRow) -> Option<i64>| (0..200_000).map(some_row).filter_map(|row| field(&row)).sum();
    let known = |value: i64| (value != UNKNOWN).then_some(value);
    let sums: [i64; 2] =
        [sum(|row| Some(row.result)), (0..200_000).filter_map(|at| known(some_row(at).dur)).sum()];
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with(&format!("{} {} ", sums[0], sums[1])), "{printed}");
}

#[test]
fn column_buffers_are_reused() {
    let folder = Folder::new("recycled");
    let mut writer = StoreWriter::create(folder.store(), NEW).unwrap();
    let mut recycled = 0;
    for _ in 0..50 {
        let spare = writer.write_events(columns((0..1000).map(some_row))).unwrap();
        recycled += usize::from(spare.is_some_and(|columns| columns.is_empty()));
    }
    assert!(recycled >= 40, "{recycled}");
}

#[test]
fn side_tables_are_read_back() {
    let folder = Folder::new("side");
    write(&folder.store(), NEW, 1).unwrap();
    let text = |value: &str| Field::Str(value.into());
    let files = rows(&folder.store().join("files.parquet"));
    let raw = Field::Bytes(b"/d/a\xff\n.dat".to_vec().into());
    let first = fields(&files[0]);
    assert_eq!(first[..2], [Field::UInt(0), text("/d/a\\xff\n.dat")]);
    assert_eq!(first[2], raw);
    assert_eq!(first[3..8], [text("regular"), Field::Bool(false), text("/d"), text("dat"), text("/d/*.dat")]);
    assert_eq!(first[8..], [text("/d"), text("ext4"), Field::Long(9), text("n1")]);
    assert_eq!(fields(&files[1])[2], Field::Null);
    let tasks = rows(&folder.store().join("processes.parquet"));
    assert_eq!(
        fields(&tasks[0])[7..12],
        [Field::Null, Field::Null, text("root"), Field::Null, Field::Long(7)]
    );
    assert_eq!(fields(&tasks[1])[2..4], [text("n1"), Field::Int(2)]);
    assert_eq!(fields(&tasks[1])[13], text("SIGKILL"));
    let commands = rows(&folder.store().join("commands.parquet"));
    assert_eq!(commands[0].to_string(), "{utid: 0, ts: 5, path: \"/bin/\\xe9\", argv: [\"a\", \"\", \"c\"]}");
    assert_eq!(commands[1].to_string(), "{utid: 1, ts: null, path: \"/bin/\\xe9\", argv: []}");
    let calls = rows(&folder.store().join("calls.parquet"));
    assert_eq!(fields(&calls[0]), [Field::UShort(0), text("open"), text("open"), text("metadata")]);
    assert!(rows(&folder.store().join("errnos.parquet")).len() > 100);
}

#[test]
fn interface_calls_are_read_back() {
    let folder = Folder::new("interfaces");
    let mut writer = StoreWriter::create(folder.store(), NEW).unwrap();
    let unknown = InterfaceRow::new(0, NONE, 3, 16, 10);
    let known = InterfaceRow {
        id: 1,
        parent: 0,
        file: 5,
        handle: 2,
        end: 30,
        result: 0,
        bytes: 8,
        offset: 9,
        ..unknown
    };
    writer.write_interface_calls(&[known, unknown]).unwrap();
    writer.finish(&Tables::default(), Manifest::default()).unwrap();
    assert_eq!(StoreInfo::open(folder.store()).unwrap().manifest.tables["interface_calls"], 2);
    let read = rows(&folder.store().join("interface_calls.parquet"));
    let [interface, call] = ["MPI-IO", "MPI_File_write_at"].map(|text| Field::Str(text.into()));
    let named = |id, parent| vec![Field::UInt(id), parent, Field::UInt(3), interface.clone(), call.clone()];
    let plain = [Field::Bool(false), Field::UByte(2)];
    let facts = [30, 20, 0, 8, 9, 1].map(Field::Long);
    let of_known =
        [named(1, Field::UInt(0)), plain.to_vec(), vec![Field::UInt(5), Field::UInt(2), Field::Long(10)]]
            .concat();
    assert_eq!(fields(&read[0]), [of_known, facts.to_vec()].concat());
    let of_unknown =
        [named(0, Field::Null), plain.to_vec(), vec![Field::Null, Field::Null, Field::Long(10)]].concat();
    assert_eq!(fields(&read[1]), [of_unknown, vec![Field::Null; 5], vec![Field::Long(1)]].concat());
}

#[test]
fn samples_and_mounts_are_read_back() {
    let folder = Folder::new("samples");
    let mut writer = StoreWriter::create(folder.store(), NEW).unwrap();
    let sample = Sample {
        ts: 3,
        source: "diskstats".into(),
        target: "sda".into(),
        metric: "read_bytes".into(),
        value: 0.5,
        kind: SampleKind::Gauge,
    };
    writer.write_samples(&vec![sample; 40_000], Some("n1")).unwrap();
    let mount = Mount { mount_point: "/".into(), fs_type: "xfs".into(), ..Mount::default() };
    writer.write_mounts(&[mount], None).unwrap();
    writer.finish(&Tables::default(), Manifest::default()).unwrap();
    let info = StoreInfo::open(folder.store()).unwrap();
    assert_eq!((info.manifest.tables["samples"], info.manifest.tables["mounts"]), (40_000, 1));
    let samples = rows(&info.samples[0]);
    assert_eq!(samples.len(), 40_000);
    assert!(samples[39_999].to_string().contains("host: \"n1\""), "{}", samples[39_999]);
    assert!(samples[0].to_string().contains("kind: \"gauge\""));
}

#[test]
fn stacks_sites_and_symbols_are_read_back() {
    let folder = Folder::new("stacks");
    let mut writer = StoreWriter::create(folder.store(), NEW).unwrap();
    let mut tables = Tables::default();
    let site = |module: &[u8], offset| Site { module: module.into(), offset, ..Site::default() };
    tables.stacks.sites = vec![site(b"/usr/lib/libc.so.6", Some(9)), site(b"", None)];
    tables.stacks.stacks = vec![[0, 1].into(), [1].into()];
    let symbol = SymbolRow { site: 1, level: 0, function: Some("f".into()), file: None, line: Some(7) };
    writer.set_symbols(vec![Some("ab".into()), None], vec![symbol]);
    let store = writer.finish(&tables, Manifest::default()).unwrap();
    let all = |table: &str| rows(&store.join(table)).iter().map(fields).collect::<Vec<_>>();
    let text = |text: &str| Field::Str(text.into());
    assert_eq!(
        all("sites.parquet"),
        [
            vec![id(0), text("/usr/lib/libc.so.6"), text("ab"), Field::Long(9), Field::Bool(true)],
            vec![id(1), Field::Null, Field::Null, Field::Null, Field::Bool(false)],
        ]
    );
    let row = |stack, depth, site| vec![id(stack), Field::UShort(depth), id(site)];
    assert_eq!(all("stacks.parquet"), [row(0, 0, 0), row(0, 1, 1), row(1, 0, 1)]);
    assert_eq!(all("symbols.parquet"), [vec![id(1), Field::UShort(0), text("f"), Field::Null, id(7)]]);
}

#[test]
fn an_empty_store_has_all_tables() {
    let folder = Folder::new("empty");
    let writer = StoreWriter::create(folder.store(), NEW).unwrap();
    writer.finish(&Tables::default(), Manifest::default()).unwrap();
    let info = StoreInfo::open(folder.store()).unwrap();
    assert_eq!((info.manifest.first_ts, info.manifest.last_ts), (None, None));
    let reader = SerializedFileReader::new(fs::File::open(&info.events[0]).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().schema_descr().num_columns(), 27);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    assert_eq!(info.tables.len(), 5);
}

#[test]
fn the_manifest_keeps_unknown_keys() {
    let folder = Folder::new("manifest");
    write(&folder.store(), NEW, 1).unwrap();
    let path = folder.store().join("manifest.json");
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    value["tomorrow"] = 7.into();
    value["captured"]["tomorrow"] = "x".into();
    fs::write(&path, value.to_string()).unwrap();
    let mut manifest = Manifest::read(&folder.store()).unwrap();
    let mut losses = Losses::default();
    losses.add_at(LossKind::CutLines, || FirstLoss { file: "log".into(), line: 4, sample: "1 rea".into() });
    manifest.losses = LossEntry::from_losses(&losses);
    manifest.write(&folder.store()).unwrap();
    let again: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&again["tomorrow"], &again["captured"]["tomorrow"]), (&7.into(), &"x".into()));
    assert_eq!(again["losses"][0]["name"], "cut-lines");
    assert_eq!(again["losses"][0]["first"]["line"], 4);
    assert_eq!(again["state"], "complete");
}

#[test]
fn newer_and_broken_manifests_are_refused() {
    let folder = Folder::new("newer");
    write(&folder.store(), NEW, 1).unwrap();
    let path = folder.store().join("manifest.json");
    fs::write(&path, r#"{"schema": 99, "writer": "iodock 9.0", "state": {"new": "shape"}}"#).unwrap();
    let error = StoreInfo::open(folder.store()).unwrap_err();
    assert!(error.to_string().contains("newer iodock (iodock 9.0, schema 99)"), "{error}");
    assert!(error.hint().contains("iodock 9.0"));
    for text in ["", "[]", "{}", "{\"schema\": \"1\"}", "{\"schema\": 1, \"tables\": 3}", "\0\0\0"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(StoreInfo::open(folder.store()), Err(StoreError::Damaged { .. })), "{text}");
    }
    assert!(matches!(StoreInfo::open(folder.0.join("none")), Err(StoreError::Missing { .. })));
    assert!(matches!(StoreInfo::open(&folder.0), Err(StoreError::NotAStore { .. })));
    fs::write(folder.0.join("file"), "x").unwrap();
    assert!(matches!(StoreInfo::open(folder.0.join("file")), Err(StoreError::NotAStore { .. })));
}

#[test]
fn an_existing_store_is_replaced_only_on_request_and_at_the_end() {
    let folder = Folder::new("force");
    write(&folder.store(), NEW, 10).unwrap();
    let error = write(&folder.store(), NEW, 20).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }) && error.hint().contains("--force"), "{error}");
    let writer = StoreWriter::create(folder.store(), FORCE).unwrap();
    assert_eq!(StoreInfo::open(folder.store()).unwrap().manifest.tables["events"], 10);
    drop(writer);
    assert_eq!(StoreInfo::open(folder.store()).unwrap().manifest.tables["events"], 10);
    write(&folder.store(), FORCE, 20).unwrap();
    assert_eq!(StoreInfo::open(folder.store()).unwrap().manifest.tables["events"], 20);
    assert_eq!(folder.names(), ["run.iodock"]);
}

#[test]
fn a_folder_that_is_not_a_store_is_never_replaced() {
    let folder = Folder::new("foreign");
    fs::create_dir(folder.store()).unwrap();
    fs::write(folder.store().join("thesis.tex"), "x").unwrap();
    assert!(matches!(write(&folder.store(), FORCE, 1), Err(StoreError::NotAStore { .. })));
    fs::write(folder.store().join("manifest.json"), "{\"name\": \"an app\"}").unwrap();
    assert!(matches!(write(&folder.store(), FORCE, 1), Err(StoreError::NotAStore { .. })));
    let file = folder.0.join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(write(&file, FORCE, 1), Err(StoreError::NotAStore { .. })));
    assert!(folder.store().join("thesis.tex").exists());
    assert!(matches!(write(Path::new("/"), FORCE, 1), Err(StoreError::NotAStore { .. })));
    let empty = folder.0.join("empty.iodock");
    fs::create_dir(&empty).unwrap();
    write(&empty, NEW, 1).unwrap();
}

#[test]
fn an_unfinished_recording_is_finished_in_its_own_folder() {
    let folder = Folder::new("complete");
    assert!(matches!(StoreWriter::create(folder.store(), COMPLETE), Err(StoreError::Missing { .. })));
    fs::create_dir_all(folder.store().join("journal")).unwrap();
    fs::write(folder.store().join("journal/n1.journal"), "IODOCKJ").unwrap();
    let manifest = Manifest { state: State::Recording, ..Manifest::default() };
    manifest.write(&folder.store()).unwrap();
    let info = StoreInfo::open(folder.store()).unwrap();
    assert!(info.is_unfinished());
    assert_eq!(info.journals.len(), 1);
    drop(StoreWriter::create(folder.store(), COMPLETE).unwrap());
    assert!(StoreInfo::open(folder.store()).unwrap().is_unfinished());
    // These files look like tables that a killed attempt left. They must be replaced.
    fs::create_dir(folder.store().join("events")).unwrap();
    fs::write(folder.store().join("events/part-00007.parquet"), "half").unwrap();
    write(&folder.store(), COMPLETE, 3).unwrap();
    let info = StoreInfo::open(folder.store()).unwrap();
    assert_eq!((info.manifest.state, info.manifest.tables["events"]), (State::Complete, 3));
    assert!(!folder.store().join("journal").exists());
    assert_eq!(fs::read_dir(folder.store()).unwrap().count(), 7);
}

#[test]
fn truncated_and_missing_files_give_an_error() {
    let folder = Folder::new("cut");
    write(&folder.store(), NEW, 1000).unwrap();
    let part = folder.store().join("events/part-00000.parquet");
    let bytes = fs::read(&part).unwrap();
    let mut manifest = Manifest::read(&folder.store()).unwrap();
    for (cut, missing) in [
        ("part-00000.parquet: is damaged", "part-00000.parquet: is missing"),
        // Expected messages for a store without checksums.
        ("part-00000.parquet: is cut or damaged", "0 rows, but 1000 according to the manifest"),
    ] {
        for length in [0, 4, 100, bytes.len() - 1] {
            fs::write(&part, &bytes[..length]).unwrap();
            let error = StoreInfo::open(folder.store()).unwrap_err();
            assert!(error.to_string().contains(cut), "{error}");
        }
        fs::remove_file(&part).unwrap();
        let error = StoreInfo::open(folder.store()).unwrap_err();
        assert!(error.to_string().contains(missing), "{error}");
        fs::write(&part, &bytes).unwrap();
        StoreInfo::open(folder.store()).unwrap();
        manifest.checksums.clear();
        manifest.write(&folder.store()).unwrap();
    }
    fs::remove_file(folder.store().join("calls.parquet")).unwrap();
    let error = StoreInfo::open(folder.store()).unwrap_err();
    assert!(error.to_string().contains("calls.parquet: is missing"), "{error}");
}

#[test]
fn a_flipped_bit_in_any_file_is_detected() {
    let folder = Folder::new("flipped");
    write(&folder.store(), NEW, 300).unwrap();
    let info = StoreInfo::open(folder.store()).unwrap();
    let names: Vec<String> = info.manifest.checksums.keys().cloned().collect();
    let tables = ["calls", "commands", "errnos", "events/part-00000", "files", "processes"];
    assert_eq!(names, tables.map(|table| format!("{table}.parquet")));
    for name in names.iter().map(String::as_str).chain(["manifest.json"]) {
        let path = folder.store().join(name);
        let bytes = fs::read(&path).unwrap();
        for trial in 0..40 {
            let mut flipped = bytes.clone();
            // The bit is not in the last line of the manifest, which contains the checksum.
            let place = trial * (bytes.len() - 60) / 40;
            flipped[place] ^= 1 << (trial % 8);
            fs::write(&path, flipped).unwrap();
            let error = StoreInfo::open(folder.store()).unwrap_err();
            assert!(error.to_string().contains(&format!("{name}: is damaged")), "{place}: {error}");
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn an_unwritable_folder_gives_an_error() {
    let error = write(Path::new("/proc/none/run.iodock"), NEW, 1).unwrap_err();
    assert!(error.to_string().starts_with("/proc/none/"), "{error}");
}

/// Writes incompressible rows until an error occurs.
fn fill(path: &Path) -> Result<PathBuf, StoreError> {
    let mut writer = StoreWriter::create(path, NEW)?;
    for chunk in 0..100 {
        let random = |index: i64| {
            let mixed = (chunk * 20_000 + index).wrapping_mul(0x1e37_79b9_7f4a_7c15);
            (mixed ^ mixed >> 31).wrapping_mul(0x3f58_476d_1ce4_e5b9) >> 8
        };
        writer.write_events(columns(
            (0..20_000).map(|index| EventRow { offset: random(index), ..null_row() }),
        ))?;
    }
    writer.finish(&Tables::default(), Manifest::default())
}

/// Needs root, because it mounts a small file system: `cargo test -p iodock-store -- --ignored`.
#[test]
#[ignore = "mounts a small tmpfs, which needs root"]
fn a_full_disk_gives_an_error_and_leaves_no_files() {
    let folder = Folder::new("full");
    let mut mount = std::process::Command::new("mount");
    if !mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&folder.0).status().unwrap().success() {
        eprintln!("skipped: may not mount");
        return;
    }
    let result = fill(&folder.store());
    let names = folder.names();
    std::process::Command::new("umount").arg(&folder.0).status().unwrap();
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Full { quota: false, .. }), "{error}");
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(names, Vec::<String>::new());
}
