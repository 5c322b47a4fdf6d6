//! Maps Darshan's counters to columns of a profile and to bins.

use iodock_darshan::{Counted, Module, Record};
use iodock_store::{Counts, RankShare};

/// The interface of a module, and for each column of a profile the counters whose sum it is. The names of
/// times lack the module's prefix.
pub struct Columns {
    pub interface: &'static str,
    pub prefix: &'static str,
    opens: &'static [&'static str],
    reads: &'static [&'static str],
    writes: &'static [&'static str],
    seeks: &'static [&'static str],
    stats: &'static [&'static str],
    syncs: &'static [&'static str],
}

const NONE: Columns = Columns {
    interface: "",
    prefix: "",
    opens: &["OPENS"],
    reads: &["READS"],
    writes: &["WRITES"],
    seeks: &[],
    stats: &[],
    syncs: &[],
};
const POSIX: Columns = Columns {
    interface: "posix",
    prefix: "POSIX_",
    seeks: &["SEEKS"],
    stats: &["STATS"],
    syncs: &["FSYNCS", "FDSYNCS"],
    ..NONE
};
const STDIO: Columns =
    Columns { interface: "stdio", prefix: "STDIO_", seeks: &["SEEKS"], syncs: &["FLUSHES"], ..NONE };
const MPI_IO: Columns = Columns {
    interface: "mpi-io",
    prefix: "MPIIO_",
    opens: &["INDEP_OPENS", "COLL_OPENS"],
    reads: &["INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"],
    writes: &["INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"],
    syncs: &["SYNCS"],
    ..NONE
};
const H5F: Columns = Columns { interface: "hdf5", prefix: "H5F_", syncs: &["FLUSHES"], ..NONE };
const H5D: Columns = Columns { interface: "hdf5-dataset", prefix: "H5D_", syncs: &["FLUSHES"], ..NONE };
const PNETCDF_FILE: Columns = Columns {
    interface: "pnetcdf",
    prefix: "PNETCDF_FILE_",
    opens: &["CREATES", "OPENS"],
    syncs: &["SYNCS"],
    ..NONE
};
/// Columns of PNETCDF_FILE in versions before 3, whose counters have other names.
const PNETCDF_EARLY: Columns =
    Columns { interface: "pnetcdf", prefix: "PNETCDF_", opens: &["INDEP_OPENS", "COLL_OPENS"], ..NONE };
const PNETCDF_VAR: Columns = Columns {
    interface: "pnetcdf-variable",
    prefix: "PNETCDF_VAR_",
    reads: &["INDEP_READS", "COLL_READS", "NB_READS"],
    writes: &["INDEP_WRITES", "COLL_WRITES", "NB_WRITES"],
    ..NONE
};

const TIMES: [&str; 3] = ["F_READ_TIME", "F_WRITE_TIME", "F_META_TIME"];
const OF_RANKS: [&str; 8] = [
    "FASTEST_RANK",
    "FASTEST_RANK_BYTES",
    "F_FASTEST_RANK_TIME",
    "SLOWEST_RANK",
    "SLOWEST_RANK_BYTES",
    "F_SLOWEST_RANK_TIME",
    "F_VARIANCE_RANK_BYTES",
    "F_VARIANCE_RANK_TIME",
];

/// Returns the interface of a module.
pub fn interface_of(module: Module) -> Option<&'static str> {
    Some(match module {
        Module::DXT_POSIX => POSIX.interface,
        Module::DXT_MPIIO => MPI_IO.interface,
        other => columns_of(other, false)?.interface,
    })
}

fn columns_of(module: Module, is_early: bool) -> Option<&'static Columns> {
    Some(match module {
        Module::POSIX => &POSIX,
        Module::STDIO => &STDIO,
        Module::MPI_IO => &MPI_IO,
        Module::H5F => &H5F,
        Module::H5D => &H5D,
        Module::PNETCDF_FILE if is_early => &PNETCDF_EARLY,
        Module::PNETCDF_FILE => &PNETCDF_FILE,
        Module::PNETCDF_VAR => &PNETCDF_VAR,
        _ => return None,
    })
}

impl Columns {
    pub fn of(counted: &Counted) -> Option<&'static Columns> {
        columns_of(counted.module, counted.layout.counter("PNETCDF_INDEP_OPENS").is_some())
    }

    /// Returns whether a counter is exactly a column, so that it is not stored among the other counters.
    /// `shared`: whether the record is for all ranks.
    pub fn has(&self, counter: &str, shared: bool) -> bool {
        let Some(short) = counter.strip_prefix(self.prefix) else { return false };
        let all = [self.opens, self.reads, self.writes, self.seeks, self.stats, self.syncs];
        all.contains(&[short].as_slice())
            || matches!(short, "BYTES_READ" | "BYTES_WRITTEN")
            || TIMES.contains(&short)
            || shared && OF_RANKS.contains(&short)
    }

    pub fn counts(&self, counted: &Counted, record: Record) -> Counts {
        let sum = |names: &[&str]| self.sum(names, counted, record);
        let time = |name| nanoseconds(self.fraction(name, counted, record)?);
        Counts {
            opens: sum(self.opens),
            reads: sum(self.reads),
            writes: sum(self.writes),
            seeks: sum(self.seeks),
            stats: sum(self.stats),
            syncs: sum(self.syncs),
            read_bytes: sum(&["BYTES_READ"]),
            written_bytes: sum(&["BYTES_WRITTEN"]),
            read_time_ns: time(TIMES[0]),
            write_time_ns: time(TIMES[1]),
            meta_time_ns: time(TIMES[2]),
        }
    }

    /// Returns the shares of the fastest and of the slowest rank.
    pub fn shares(&self, counted: &Counted, record: Record) -> [RankShare; 2] {
        [0, 3].map(|at| RankShare {
            rank: self.counter(OF_RANKS[at], counted, record).and_then(|rank| i32::try_from(rank).ok()),
            bytes: self.counter(OF_RANKS[at + 1], counted, record),
            time_ns: self.fraction(OF_RANKS[at + 2], counted, record).and_then(nanoseconds),
        })
    }

    /// Returns the variance of the ranks' bytes, and that of their seconds.
    pub fn variances(&self, counted: &Counted, record: Record) -> [Option<f64>; 2] {
        [6, 7].map(|at| self.fraction(OF_RANKS[at], counted, record).filter(|value| *value >= 0.0))
    }

    /// Returns the sum of those counters that the module's version has. If Darshan marks one of them as
    /// unknown (-1), the sum is unknown.
    fn sum(&self, names: &[&str], counted: &Counted, record: Record) -> Option<i64> {
        let known = names.iter().filter_map(|name| counted.layout.counter(&format!("{}{name}", self.prefix)));
        let values: Vec<i64> = known.map(|at| record.counter(at)).collect();
        if values.is_empty() || values.iter().any(|&value| value < 0) {
            return None;
        }
        Some(values.into_iter().fold(0, i64::saturating_add))
    }

    pub fn counter(&self, name: &str, counted: &Counted, record: Record) -> Option<i64> {
        self.sum(&[name], counted, record)
    }

    fn fraction(&self, name: &str, counted: &Counted, record: Record) -> Option<f64> {
        // A version that lacks the time, such as an early one of PNETCDF_FILE, has no index for it.
        let at = counted.layout.fraction(&format!("{}{name}", self.prefix))?;
        Some(record.fraction(at))
    }
}

/// Converts seconds to ns; `None` for an invalid time.
pub fn nanoseconds(seconds: f64) -> Option<i64> {
    let ns = (seconds * 1e9).round();
    (ns >= 0.0 && ns < i64::MAX as f64).then_some(ns as i64)
}
