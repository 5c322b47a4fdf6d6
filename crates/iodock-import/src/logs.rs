//! Opens logs as streams: determines their format, ranks and working directories, and whether the order of
//! their calls is known.

use crate::merge::Stream;
use crate::places::{place_logs, LogPlace};
use crate::ImportError;
use iodock_event::{Clock, LossKind, Losses};
use iodock_formats::{is_format, open_log, LineRange, ReadOptions, FORMATS};
use iodock_tracker::{SpaceOptions, Tracker, TrackerOptions};

/// The logs to read, and facts that the logs do not contain.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Paths of the logs; `-` is standard input.
    pub logs: Vec<String>,
    /// Name of a format; `None` means that the format is detected.
    pub format: Option<String>,
    /// Working directories at the start of the traced programs: none, one for all logs, or one for each log.
    pub working_directories: Vec<Vec<u8>>,
    /// Place where a log's rank is found: see [`place_logs`].
    pub rank_from: Option<String>,
    /// Lines to read if there is a single log.
    pub lines: Option<LineRange>,
    /// Number of parsing threads for a single log; 0 means one per processor.
    pub threads: usize,
}

/// The opened logs, and a tracker that knows their spaces.
pub struct Opened {
    pub streams: Vec<Stream>,
    pub tracker: Tracker,
    pub clock: Clock,
    /// Names of the formats found, such as `strace`.
    pub formats: Vec<&'static str>,
    pub hosts: Vec<String>,
    pub ranks: Option<i32>,
    /// A loss, if there are several logs whose time stamps do not show the order of calls.
    pub losses: Losses,
}

/// A second in ns. Time stamps with this resolution do not show the order of calls.
const SECOND: i64 = 1_000_000_000;
/// Number of bytes that all logs together are read ahead, and the minimum for one log.
const READ_AHEAD: usize = 16 << 20;
const LEAST_CHUNK: usize = 64 << 10;
/// Largest number of parsing threads. One thread tracks the calls, which takes longer than parsing with two
/// threads.
const MOST_WORKERS: usize = 4;

/// Opens `options.logs`.
///
/// # Errors
/// A log cannot be opened or is not a log, the format does not exist, the names do not contain the ranks, or
/// the number of working directories is wrong.
pub fn open_logs(options: &LogOptions) -> Result<Opened, ImportError> {
    check(options)?;
    let places = place_logs(&options.logs, options.rank_from.as_deref())?;
    let (mut streams, mut formats, mut coarse) = (Vec::new(), Vec::new(), 0);
    for place in &places {
        let source = open_log(&place.path, options.format.as_deref(), &read_options(options))?;
        if !formats.contains(&source.format()) {
            formats.push(source.format());
        }
        coarse += u64::from(source.resolution().is_none_or(|resolution| resolution >= SECOND));
        streams.push(Stream::new(source, space_number(place)?)?);
    }
    let counting = streams.iter().filter(|stream| stream.counts_only()).count();
    if counting > 0 && counting < streams.len() {
        return Err(ImportError::Usage {
            message: "logs of calls and tables of counts don't make one run".into(),
            hint: "import the tables of strace -c into a store of their own".into(),
        });
    }
    let alone = streams.len() == 1 || counting > 0;
    let unordered = !alone && (coarse > 0 || streams.iter().any(|stream| !stream.has_durations()));
    let mut losses = Losses::default();
    losses.add(LossKind::CoarseTimestamps, if alone { 0 } else { coarse });
    let tracker = Tracker::new(TrackerOptions { spaces: spaces(options, &places, unordered) });
    let mut hosts: Vec<String> = places.iter().filter_map(|place| place.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    let ranks = places.iter().filter_map(|place| place.rank).max().map(|last| last + 1);
    let clock = streams.first().map_or(Clock::None, Stream::clock);
    Ok(Opened { streams, tracker, clock, formats, hosts, ranks, losses })
}

/// Returns the formats that can be read, as values for [`LogOptions::format`].
pub fn format_names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name()).collect()
}

fn check(options: &LogOptions) -> Result<(), ImportError> {
    let (logs, directories) = (options.logs.len(), options.working_directories.len());
    if logs == 0 {
        return Err(ImportError::Usage {
            message: "no log given".into(),
            hint: "iodock import LOG...".into(),
        });
    }
    let format = options.format.as_deref();
    if let Some(unknown) = format.filter(|name| !is_format(name)) {
        return Err(ImportError::Usage {
            message: format!("no such log format: {unknown}"),
            hint: format!("formats: {}", format_names().join(", ")),
        });
    }
    if options.lines.is_some() && logs > 1 {
        return Err(ImportError::Usage {
            message: format!("--lines is for one log, not for {logs}"),
            hint: "import that log alone".into(),
        });
    }
    if directories > 1 && directories != logs {
        return Err(ImportError::Usage {
            message: format!("{directories} working directories for {logs} logs"),
            hint: "give --cwd once for all logs, or once for each in their order".into(),
        });
    }
    Ok(())
}

fn read_options(options: &LogOptions) -> ReadOptions {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let logs = options.logs.len();
    let workers = match options.threads {
        0 if logs == 1 => processors.min(MOST_WORKERS),
        // Up to four logs get a thread each. The merging thread parses larger numbers of logs.
        0 if logs <= 4 => 1,
        0 => 0,
        threads => threads,
    };
    let read = ReadOptions { workers, ..ReadOptions::default() };
    let chunk_size = (READ_AHEAD / (logs * read.chunks_ahead())).clamp(LEAST_CHUNK, read.chunk_size);
    ReadOptions { chunk_size, lines: options.lines, ..read }
}

fn space_number(place: &LogPlace) -> Result<u16, ImportError> {
    u16::try_from(place.space).map_err(|_| ImportError::Usage {
        message: "more than 65,535 ranks".into(),
        hint: "import a part of the logs".into(),
    })
}

fn spaces(options: &LogOptions, places: &[LogPlace], unordered: bool) -> Vec<SpaceOptions> {
    let count = places.iter().map(|place| place.space + 1).max().unwrap_or(0);
    let mut spaces = vec![SpaceOptions::default(); count];
    for (index, place) in places.iter().enumerate() {
        let directories = &options.working_directories;
        let space = &mut spaces[place.space];
        // The first log of a space is that of its first program, so it determines the working directory.
        if space.working_directory.is_none() {
            space.working_directory = directories.get(index).or(directories.first()).cloned();
        }
        space.rank = place.rank;
        space.host = place.host.clone();
        space.unordered = unordered;
    }
    spaces
}
