/// Returns every value of a log, one per line: tab-separated, with fractions as the bits of the number.
/// Records keep their order; names are sorted. `tests/pydarshan/values.py` prints the same values as
/// PyDarshan reads them.
fn values(log: &Log) -> String {
    let mut out = String::new();
    job(log, &mut out);
    let mut names: Vec<_> = log.names.iter().collect();
    names.sort_unstable();
    for (id, name) in names {
        let _ = writeln!(out, "name\t{id}\t{}", String::from_utf8_lossy(name));
    }
    for module in &log.counted {
        counted(module, &mut out);
    }
    lustre(log, &mut out);
    for module in &log.traced {
        for file in &module.files {
            let _ = writeln!(out, "{}\t{}\t{}\t{}", module.module.name(), file.id, file.rank, file.host);
            for access in module.accesses(file) {
                self::access(&access, &mut out);
            }
        }
    }
    for map in &log.heatmaps {
        let _ = writeln!(out, "HEATMAP\t{}\t{}\t{:016x}", map.id, map.rank, map.bin_s.to_bits());
        let _ = writeln!(out, "write\t{:?}\nread\t{:?}", map.written, map.read);
    }
    out
}

fn job(log: &Log, out: &mut String) {
    let Some(job) = &log.job else { return };
    let _ = writeln!(out, "format\t{}", log.format);
    let _ = writeln!(out, "job\t{}\t{}\t{}\t{}\t{}", job.uid, job.start.s, job.end.s, job.processes, job.id);
    let _ = writeln!(out, "ns\t{}\t{}", job.start.ns.unwrap_or(0), job.end.ns.unwrap_or(0));
    let _ = writeln!(out, "command\t{}", job.command.as_deref().unwrap_or_default());
    for (key, value) in &job.metadata {
        let _ = writeln!(out, "metadata\t{key}\t{value}");
    }
    let mut mounts: Vec<_> = job.mounts.iter().map(|mount| (&mount.path, &mount.file_system)).collect();
    mounts.sort_unstable();
    for (path, file_system) in mounts {
        let _ = writeln!(out, "mount\t{path}\t{file_system}");
    }
}

/// Counters of POSIX that PyDarshan drops.
const OF_STREAMS: [&str; 4] = ["POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FSEEKS"];
/// Fractions of POSIX that PyDarshan reads as zero in records of versions 2 and 3.
const ZEROED: [&str; 2] = ["POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES"];

fn counted(module: &Counted, out: &mut String) {
    let are_zeroed = matches!(module.version, Some(2 | 3));
    for record in module.records() {
        let _ = writeln!(out, "{}\t{}\t{}", module.module.name(), record.id(), record.rank().unwrap_or(-1));
        if let Some(file) = record.file() {
            let _ = writeln!(out, "file\t{file}");
        }
        let mut independent = 0;
        for (name, value) in record.counters().filter(|(name, _)| !OF_STREAMS.contains(name)) {
            // Version 3 of PnetCDF has one counter for these two values, and PyDarshan adds them up in older
            // logs.
            match name {
                "PNETCDF_INDEP_OPENS" => independent = value,
                "PNETCDF_COLL_OPENS" => {
                    let _ = writeln!(out, "PNETCDF_FILE_OPENS\t{}", independent + value);
                }
                _ => {
                    let _ = writeln!(out, "{name}\t{value}");
                }
            }
        }
        for (name, value) in record.fractions() {
            let _ = match are_zeroed && ZEROED.contains(&name) {
                true => writeln!(out, "{name}\t?"),
                false => writeln!(out, "{name}\t{:016x}", value.to_bits()),
            };
        }
    }
}

/// Prints the Lustre layouts without the values that only iodock's reader keeps (OSTs and MDTs of the file
/// system, in version 1).
fn lustre(log: &Log, out: &mut String) {
    for file in &log.lustre {
        let _ = writeln!(out, "LUSTRE\t{}\t{}", file.id, file.rank.unwrap_or(-1));
        for one in &file.components {
            let known = [one.pattern, one.flags, one.start, one.end, one.mirror].map(|value| value.unwrap_or(-1));
            let pool = one.pool.as_deref().unwrap_or_default();
            let _ = writeln!(out, "component\t{}\t{}\t{known:?}\t{pool}", one.stripe_bytes, one.stripe_count);
            let _ = writeln!(out, "targets\t{:?}", one.targets);
        }
    }
}

fn access(access: &Access, out: &mut String) {
    let name = if access.direction == Direction::Write { "write" } else { "read" };
    let (start, end) = (access.start_s.to_bits(), access.end_s.to_bits());
    let offset = access.offset.unwrap_or(-1);
    let _ = writeln!(out, "{name}\t{offset}\t{}\t{start:016x}\t{end:016x}", access.bytes);
}
