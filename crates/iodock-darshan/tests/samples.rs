//! Compares every value of every sample with PyDarshan's (`fixtures/darshan/expected.tsv`, and PyDarshan
//! itself if it is installed).

mod support;

use iodock_darshan::{is_darshan, ByteOrder, Module, Written};
use std::path::Path;
use std::process::Command;
use support::{forms, read, sample, samples, text};

#[test]
fn values_of_all_samples_equal_those_of_pydarshan() {
    let expected = include_str!("../../../fixtures/darshan/expected.tsv");
    let mut compared = 0;
    for path in samples() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let line =
            expected.lines().find(|line| line.starts_with(&format!("{name}\t"))).expect("a line a sample");
        let log = read(&std::fs::read(&path).expect("readable")).expect("a whole log");
        let text = text(&log);
        let mut sum = flate2::Crc::new();
        sum.update(text.as_bytes());
        assert_eq!(line, format!("{name}\t{}\t{:08x}", text.lines().count(), sum.sum()));
        compared += text.lines().count();
    }
    assert_eq!(
        compared,
        expected.lines().map(|line| line.split('\t').nth(1).unwrap().parse::<usize>().unwrap()).sum()
    );
}

/// Compares all values line by line with the installed PyDarshan. `make test-darshan` installs PyDarshan and
/// sets the path of its Python. Its wheel cannot read bzip2. `IODOCK_DARSHAN_LOGS` may name a folder of more
/// logs.
#[test]
fn values_equal_those_of_the_installed_pydarshan() {
    let Some(python) = std::env::var_os("IODOCK_PYDARSHAN") else {
        eprintln!("skipped: IODOCK_PYDARSHAN does not name a Python with PyDarshan (make test-darshan)");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pydarshan/values.py");
    let mut logs = samples();
    let more = std::env::var_os("IODOCK_DARSHAN_LOGS").map(std::path::PathBuf::from);
    for entry in more.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder of logs")) {
        logs.push(entry.expect("readable").path());
    }
    // The test starts Python once for all logs, because a start takes seconds.
    let theirs = Command::new(&python).arg(&script).args(&logs).output().expect("the Python starts");
    assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
    let theirs = String::from_utf8_lossy(&theirs.stdout);
    let ours = logs.iter().map(|path| {
        let log = read(&std::fs::read(path).expect("readable")).expect("a whole log");
        format!("log\t{}\n{}", path.display(), text(&log))
    });
    let ours: String = ours.collect();
    let mut of = "";
    for (our, their) in ours.lines().zip(theirs.lines()) {
        of = if our.starts_with("log\t") { our } else { of };
        assert_eq!(our, their, "{of}");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    eprintln!("{} logs agree with PyDarshan", logs.len());
}

#[test]
fn other_compressions_give_the_same_log() {
    for path in samples() {
        let whole = std::fs::read(&path).expect("readable");
        // The four largest samples contain nothing special, and would take most of the time.
        if whole.len() > 20_000 {
            continue;
        }
        let expected = text(&read(&whole).expect("a whole log"));
        for compression in [forms::ZLIB, forms::BZIP2, forms::NONE] {
            let log = read(&forms::apart(&whole).together(compression)).expect("a whole log");
            assert_eq!(text(&log), expected, "{} by {compression}", path.display());
        }
    }
}

/// Darshan's own darshan-convert made these samples, which raised their format to 3.41.
#[test]
fn a_log_compressed_by_darshan_with_bzip2_gives_the_same_values() {
    for name in ["ior-hdf5", "ior-pnetcdf", "mpi-io-test-dxt"] {
        let path = format!("{}/../../fixtures/darshan/bzip2/{name}.darshan", env!("CARGO_MANIFEST_DIR"));
        let log = read(&std::fs::read(path).expect("readable")).expect("a whole log");
        let compression = iodock_darshan::Compression::Bzip2;
        assert_eq!(log.written, Written::Binary { order: ByteOrder::Little, compression });
        let without_format = |text: String| text.lines().skip(1).map(String::from).collect::<Vec<_>>();
        let original = read(&sample(name)).expect("a whole log");
        assert_eq!(without_format(text(&log)), without_format(text(&original)));
    }
}

#[test]
fn both_byte_orders_are_recognised() {
    let order = |name: &str| match read(&sample(name)).expect("a whole log").written {
        Written::Binary { order, .. } => order,
        Written::Text => panic!("it is binary"),
    };
    assert_eq!(order("mpi-io-test-ppc64-3.1.8"), ByteOrder::Big);
    assert_eq!(order("mpi-io-test-x86_64-3.1.8"), ByteOrder::Little);
}

/// PyDarshan drops these values from POSIX records of version 3. The expected numbers were read from the
/// record's bytes with `struct.unpack`.
#[test]
fn variances_of_version_3_logs_are_kept() {
    let log = read(&sample("mpi-io-test-ppc64-3.1.0")).expect("a whole log");
    let posix = log.module(Module::POSIX).expect("it has POSIX");
    let at = posix.layout.fraction("POSIX_F_VARIANCE_RANK_TIME").expect("version 3 has it");
    let found: Vec<f64> = posix.records().map(|record| record.fraction(at)).collect();
    assert_eq!(found, [f64::from_bits(0x3f61_d7e9_1edd_197f)]);
}

/// Version 1 of POSIX also counted C streams. PyDarshan drops these counters, and the records that contain
/// them.
#[test]
fn streams_of_version_1_logs_are_kept() {
    let mut parts = forms::apart(&sample("mpi-io-test-x86_64-3.0.1"));
    let posix = parts.regions.iter_mut().find(|(place, _)| *place == Some(24 + 16 * 2)).expect("POSIX");
    posix.1[0][16 + 8 * 6] = 5;
    let log = read(&parts.together(forms::ZLIB)).expect("a whole log");
    let posix = log.module(Module::POSIX).expect("it has POSIX");
    assert_eq!((posix.total("POSIX_FOPENS"), posix.total("POSIX_FILENOS")), (Some(5), None));
    assert!(support::losses(&log).contains(&("POSIX module".into(), "darshan-mixed-counters", 1)));
}

#[test]
fn a_record_of_all_ranks_stays_one_record() {
    let log = read(&sample("skew-app")).expect("a whole log");
    let posix = log.module(Module::POSIX).expect("it has POSIX");
    let ranks: Vec<_> = posix.records().map(|record| record.rank()).collect();
    assert_eq!(ranks, [None]);
    let slowest = posix.layout.counter("POSIX_SLOWEST_RANK").expect("all versions have it");
    assert!(posix.records().all(|record| record.counter(slowest) >= 0));
    assert_eq!(log.job.expect("whole").processes, 65536);
}

#[test]
fn records_that_darshan_dropped_are_named() {
    let log = read(&sample("imbalanced-io")).expect("a whole log");
    assert_eq!(support::losses(&log), [("POSIX module".into(), "darshan-partial-module", 1)]);
    assert!(log.losses[0].kind.cure().contains("DARSHAN_MODMEM"));
    let log = read(&sample("partial-data-stdio")).expect("a whole log");
    assert_eq!(support::losses(&log), [("STDIO module".into(), "darshan-partial-module", 1)]);
    let log = read(&sample("ior-dfs")).expect("a whole log");
    let unread = [
        ("DFS module".into(), "darshan-unread-module", 173),
        ("DAOS module".into(), "darshan-unread-module", 405),
    ];
    assert_eq!(support::losses(&log), unread);
}

#[test]
fn a_job_without_files_is_read_without_losses() {
    let log = read(&sample("empty")).expect("a whole log");
    assert_eq!((log.records(), log.losses.len()), (0, 0));
    assert_eq!(log.job.expect("whole").processes, 4);
}

#[test]
fn logs_and_texts_are_distinguished_from_other_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let place = std::env::temp_dir().join(format!("iodock-darshan-known-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a folder");
    for (number, path) in samples().iter().enumerate() {
        // The reader must recognise a log by its first bytes, whatever its name is.
        let copy = place.join(format!("{number}.log"));
        std::fs::copy(path, &copy).expect("a copy");
        assert!(is_darshan(path) && is_darshan(&copy), "{}", path.display());
    }
    assert!(is_darshan(&folder.join("darshan/text/ior-hdf5.txt")));
    let others = ["darshan/README.md", "darshan/expected.tsv", "darshan", "darshan/there-is-none"];
    for name in others {
        assert!(!is_darshan(&folder.join(name)), "{name}");
    }
    for start in
        ["3.14 is a number\n", "3.41", "", "1700000000.000100 close(3) = 0 <0.000005>\n", "3.00\0\0\0\0"]
    {
        let other = place.join("other.log");
        std::fs::write(&other, start).expect("a file");
        // The last file begins like a log but is cut off, which opening it reports.
        assert_eq!(is_darshan(&other), start.ends_with('\0'), "{start:?}");
    }
    let named = place.join("job.darshan");
    std::fs::write(&named, "").expect("a file");
    assert!(is_darshan(&named));
    std::fs::remove_dir_all(&place).expect("removed");
}
