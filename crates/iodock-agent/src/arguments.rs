//! Parses the command line.

use iodock_agent::collection::Options;
use iodock_agent::logs::rules::Rules;
use iodock_agent::logs::{site, Logs};
use iodock_agent::push::Push;
use iodock_agent::serving::Keys;
use lexopt::prelude::*;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

const USAGE: &str = "\
usage: iodock-agent once [--format openmetrics|json] [--root DIR] [--jobs N] [--deadline SECONDS]
       iodock-agent run [--listen ADDRESS] [--root DIR] [--jobs N] [--deadline SECONDS]
                        [--spool DIR] [--spool-limit BYTES] [--interval SECONDS]
                        [--log FILE]... [--rules FILE] [--probe-store DIR]... [--probe-limit SECONDS]
                        [--push URL [--token-file FILE] [--ca FILE] [--cert FILE --key FILE] [--insecure]]
                        [--serve-spool] [--listen-token-file FILE]
                        [--listen-cert FILE --listen-key FILE [--listen-ca FILE]] [--end-with-input]

Reads the counters of Lustre, GPFS, NFS, disks, cgroups and processes: `once`, and prints them; or whenever
/metrics is asked for; or with --push, --serve-spool or --spool at an interval, and keeps them until the collector
has them.

  --listen ADDRESS    where /metrics is served (default 127.0.0.1:9846); beyond the loopback interface only with
                      TLS, and to who shows a token or a certificate
  --listen-token-file FILE  what who asks must show, also on the loopback interface; nobody else may read the file
  --listen-cert FILE --listen-key FILE  serve https with this certificate and its key, PEM
  --listen-ca FILE    let in only who has a certificate of this authority, PEM
  --root DIR          look for /proc, /sys and tools below DIR (default /)
  --format FORMAT     openmetrics (default), or json: samples and losses
  --jobs N            list the N heaviest jobs of each target, and the sum of the others
                      (default 50, in json all)
  --deadline SECONDS  what has not answered by then is left out and said (default 5)
  --push URL          send to the collector there (http:// only on the loopback interface)
  --serve-spool       the collector comes for samples (iodock monitor serve --pull), at --listen
  --token-file FILE   shown to the collector; nobody else may read the file
  --ca FILE           certificates that the collector's must be signed by, PEM (default: the system's)
  --cert FILE --key FILE  the agent's own certificate and its key, PEM; nobody else may read the key
  --insecure          http:// to other machines too: everyone on the way sees the token and the jobs
  --spool DIR         keep samples there until they are sent (default /var/lib/iodock-agent/spool)
  --spool-limit BYTES of its files; beyond that the oldest are dropped (default 256M; K, M, G)
  --log FILE          of syslog, to be read for events (default /var/log/messages or /var/log/syslog, else the
                      journal); may be given several times
  --rules FILE        the site's own rules for logs, TOML
  --probe-store DIR   what iodock probe run writes; may be given several times
  --probe-limit SECONDS  a round of a probe that takes longer is an event
  --interval SECONDS  between readings, on the clock's multiples (default 10)
  --end-with-input    end when standard input does: whoever started the agent has ended
  --version           print the version
";
pub const HINT: &str = "iodock-agent --help lists the options";
/// Default number of listed jobs. It is limited because each job is a series in Prometheus.
const LISTED_JOBS: usize = 50;
/// Default port, in the range that Prometheus exporters use.
const PORT: u16 = 9846;
const SPOOL: &str = "/var/lib/iodock-agent/spool";
const SPOOL_LIMIT: u64 = 256 << 20;
/// Smallest limit of the spool, in bytes. A smaller one leaves no room for a batch.
const LEAST_LIMIT: u64 = 64 << 10;
const INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    OpenMetrics,
    Json,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Verb {
    Once,
    Run,
}

pub struct Arguments {
    pub verb: Option<Verb>,
    pub format: Format,
    pub listen: SocketAddr,
    pub keys: Keys,
    pub ends_with_input: bool,
    jobs: Option<usize>,
    root: PathBuf,
    deadline: Duration,
    sending: Sending,
    is_spooling: bool,
    logs: Arc<Logs>,
}

/// Settings of the spool, and of sending to a collector.
pub struct Sending {
    pub push: Push,
    /// Whether a collector pulls from this agent.
    pub is_pulled: bool,
    pub spool: PathBuf,
    pub limit: u64,
    pub interval: Duration,
}

impl Arguments {
    /// Returns the settings for sending. `None` without --push, --serve-spool and --spool.
    pub fn sending(&self) -> Option<&Sending> {
        let is_sent = self.sending.push.url.is_some() || self.sending.is_pulled;
        (self.is_spooling || is_sent).then_some(&self.sending)
    }

    pub fn options(&self) -> Options {
        let all = if self.format == Format::Json { usize::MAX } else { LISTED_JOBS };
        Options {
            root: self.root.clone(),
            jobs: self.jobs.unwrap_or(all),
            deadline: self.deadline,
            logs: Arc::clone(&self.logs),
        }
    }
}

fn print(text: &str) -> ! {
    let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    exit(i32::from(written.is_err()));
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments {
            verb: None,
            format: Format::OpenMetrics,
            listen: SocketAddr::from(([127, 0, 0, 1], PORT)),
            keys: Keys::default(),
            ends_with_input: false,
            jobs: None,
            root: "/".into(),
            deadline: Duration::from_secs(5),
            sending: Sending {
                push: Push::default(),
                is_pulled: false,
                spool: SPOOL.into(),
                limit: SPOOL_LIMIT,
                interval: INTERVAL,
            },
            is_spooling: false,
            logs: Arc::default(),
        }
    }
}

/// Parses `words`, which do not include the program's name. An error says which argument is wrong.
pub fn arguments(words: impl Iterator<Item = OsString>) -> Result<Arguments, String> {
    let mut parser = lexopt::Parser::from_args(words);
    let (mut arguments, mut named) = (Arguments::default(), Logs::default());
    while let Some(word) = parser.next().map_err(|error| error.to_string())? {
        match word {
            Value(verb) if arguments.verb.is_none() => arguments.verb = Some(self::verb(&verb)?),
            Value(word) => return Err(format!("unknown argument {}", word.to_string_lossy())),
            Short('h') => print(USAGE),
            Short(letter) => return Err(format!("unknown argument -{letter}")),
            Long(name) => {
                let name = name.to_owned();
                option(&name, &mut parser, &mut arguments, &mut named)?;
            }
        }
    }
    arguments.logs = Arc::new(named);
    fits_together(&arguments)?;
    Ok(arguments)
}

fn verb(word: &OsStr) -> Result<Verb, String> {
    match word.to_str() {
        Some("once") => Ok(Verb::Once),
        Some("run") => Ok(Verb::Run),
        _ => Err(format!("unknown argument {}", word.to_string_lossy())),
    }
}

fn option(
    name: &str,
    parser: &mut lexopt::Parser,
    arguments: &mut Arguments,
    named: &mut Logs,
) -> Result<(), String> {
    let mut value = || parser.value().map_err(|_| format!("--{name} needs a value"));
    let Arguments { sending, keys, .. } = arguments;
    match name {
        "listen" => arguments.listen = address(&value()?)?,
        "root" => arguments.root = value()?.into(),
        "format" => arguments.format = format_named(&value()?)?,
        "jobs" => arguments.jobs = Some(jobs(&value()?)?),
        "deadline" => arguments.deadline = deadline(&value()?)?,
        "spool" => (sending.spool, arguments.is_spooling) = (value()?.into(), true),
        "spool-limit" => sending.limit = limit(&value()?)?,
        "interval" => sending.interval = interval(&value()?)?,
        "log" => named.files.get_or_insert_default().push(value()?.into()),
        "rules" => named.rules = rules(&value()?)?,
        "probe-store" => named.probes.push(value()?.into()),
        "probe-limit" => named.probe_limit = Some(probe_limit(&value()?)?),
        "end-with-input" => arguments.ends_with_input = true,
        "serve-spool" => sending.is_pulled = true,
        "listen-token-file" => keys.token = Some(value()?.into()),
        "listen-cert" => keys.certificate = Some(value()?.into()),
        "listen-key" => keys.key = Some(value()?.into()),
        "listen-ca" => keys.authority = Some(value()?.into()),
        "insecure" => sending.push.is_insecure = true,
        "push" => sending.push.url = Some(value()?.to_string_lossy().into_owned()),
        "token-file" => sending.push.token = Some(value()?.into()),
        "ca" => sending.push.authorities = Some(value()?.into()),
        "cert" => sending.push.certificate = Some(value()?.into()),
        "key" => sending.push.key = Some(value()?.into()),
        "help" => print(USAGE),
        "version" => print(&version()),
        _ => return Err(format!("unknown argument --{name}")),
    }
    Ok(())
}

/// Returns the text for --version. It contains the commit if the build sets IODOCK_COMMIT, as `make wheel`
/// does.
fn version() -> String {
    let build = option_env!("IODOCK_COMMIT").map(|commit| format!("build: {commit}\n"));
    format!("iodock-agent {}\n{}", env!("CARGO_PKG_VERSION"), build.unwrap_or_default())
}

fn fits_together(arguments: &Arguments) -> Result<(), String> {
    if arguments.sending.is_pulled && arguments.sending.push.url.is_some() {
        return Err("--push or --serve-spool: what one collector has got, the other would miss".into());
    }
    let logs = &arguments.logs;
    let is_named = logs.files.is_some() || !logs.probes.is_empty() || logs.probe_limit.is_some();
    if is_named && arguments.sending().is_none() {
        return Err(
            "--log, --probe-store and --probe-limit: events go to the collector, so --push, --serve-spool or --spool".into(),
        );
    }
    Ok(())
}

fn rules(path: &OsStr) -> Result<Rules, String> {
    let wrong = |why: String| format!("--rules {}: {why}", path.to_string_lossy());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Rules::new(site::rules(&text).map_err(wrong)?).map_err(wrong)
}

fn probe_limit(text: &OsStr) -> Result<Duration, String> {
    let seconds = text.to_str().and_then(|text| text.parse::<f64>().ok());
    let duration = seconds.filter(|it| (0.001..=3600.0).contains(it)).map(Duration::from_secs_f64);
    duration.ok_or_else(|| format!("--probe-limit {}: not 0.001 to 3600 seconds", text.to_string_lossy()))
}

fn limit(text: &OsStr) -> Result<u64, String> {
    let wrong = || format!("--spool-limit {}: not {LEAST_LIMIT} bytes or more", text.to_string_lossy());
    let shown = text.to_str().ok_or_else(wrong)?;
    let unit =
        ["K", "M", "G", "T"].iter().zip(1..).find_map(|(unit, at)| Some((shown.strip_suffix(unit)?, at)));
    let (digits, power) = unit.unwrap_or((shown, 0));
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << (10 * power)));
    number.filter(|&number| number >= LEAST_LIMIT).ok_or_else(wrong)
}

fn interval(text: &OsStr) -> Result<Duration, String> {
    let seconds = text.to_str().and_then(|text| text.parse::<f64>().ok());
    let duration = seconds.filter(|it| (0.1..=3600.0).contains(it)).map(Duration::from_secs_f64);
    duration.ok_or_else(|| format!("--interval {}: not 0.1 to 3600 seconds", text.to_string_lossy()))
}

fn address(text: &OsStr) -> Result<SocketAddr, String> {
    let address = text.to_str().and_then(|text| text.parse().ok());
    address.ok_or_else(|| {
        format!("--listen {}: not an address and port, as 127.0.0.1:9846", text.to_string_lossy())
    })
}

fn format_named(text: &OsStr) -> Result<Format, String> {
    match text.to_str() {
        Some("openmetrics") => Ok(Format::OpenMetrics),
        Some("json") => Ok(Format::Json),
        _ => Err(format!("--format {}: openmetrics or json", text.to_string_lossy())),
    }
}

fn jobs(text: &OsStr) -> Result<usize, String> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("--jobs {}: not a whole number", text.to_string_lossy()))
}

fn deadline(text: &OsStr) -> Result<Duration, String> {
    let seconds = text.to_str().and_then(|text| text.parse::<f64>().ok());
    let duration = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let short = duration.filter(|it| it.as_secs() < 3600);
    short.ok_or_else(|| format!("--deadline {}: not 0 to 3600 seconds", text.to_string_lossy()))
}
