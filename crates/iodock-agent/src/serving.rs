//! `/metrics` for Prometheus and those who read its format: whoever asks gets a round of this moment, or the last
//! one of those that are made at an interval.
//!
//! Only on the loopback interface: who may see other people's jobs elsewhere is for authentication to say.

use crate::batches::Batches;
use crate::collection::{Collector, Options, SourceRound};
use crate::events::memory::Memory;
use crate::spool::Spool;
use crate::{exposition, json, notes, sources};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use iodock_samples::batch::Loss;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Who asks again sooner gets the same answer: asking must not load the machine.
const FRESH: Duration = Duration::from_secs(1);
/// A round that was made for the collector serves those who ask for so long: the machine is not read twice.
const RECENT: Duration = Duration::from_secs(15);
/// Others wait until one ends: one that says nothing does after [`HEAD`].
const MOST_CONNECTIONS: usize = 64;
/// For a request to be there, and for the whole of a connection.
const HEAD: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Gets each round.
pub type Tell = Box<dyn Fn(&[SourceRound]) + Send + Sync>;

/// What is served.
pub struct Metrics {
    options: Options,
    host: String,
    tell: Tell,
    spooling: Option<Spooling>,
    last: Mutex<Last>,
}

/// Where rounds are kept for the collector.
#[derive(Clone)]
pub struct Spooling {
    pub batches: Arc<Batches>,
    pub spool: Arc<Spool>,
}

#[derive(Default)]
struct Last {
    collector: Collector,
    /// Of the interval.
    rounds: Option<(Instant, Vec<SourceRound>)>,
    answer: Option<(Instant, Bytes)>,
}

impl Metrics {
    /// `memory`: of events, where they are sent.
    pub fn new(
        options: Options,
        host: String,
        tell: Tell,
        spooling: Option<Spooling>,
        memory: Option<Memory>,
    ) -> Self {
        let collector = memory.map(Collector::with).unwrap_or_default();
        let last = Mutex::new(Last { collector, ..Last::default() });
        Metrics { options, host, tell, spooling, last }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A round as OpenMetrics text, at most [`FRESH`] old, or [`RECENT`] if it was made at the interval. Takes as
    /// long as the slowest source, at most the deadline.
    pub fn text(&self) -> Bytes {
        let mut last = self.last();
        if let Some((_, text)) = last.answer.as_ref().filter(|(time, _)| time.elapsed() < FRESH) {
            return text.clone();
        }
        let recent = last.rounds.take().filter(|(time, _)| time.elapsed() < RECENT);
        let text = match &recent {
            Some((_, rounds)) => self.shown(rounds),
            None => {
                let rounds = last.collector.round(&self.options, sources::ALL, None);
                (self.tell)(&rounds);
                self.shown(&rounds)
            }
        };
        last.rounds = recent;
        last.answer = Some((Instant::now(), text.clone()));
        text
    }

    fn shown(&self, rounds: &[SourceRound]) -> Bytes {
        let mut text = Vec::new();
        let state = self.spooling.as_ref().map(|spooling| spooling.spool.state());
        // Writing into memory does not fail.
        let _ = exposition::write(rounds, &self.host, state, &mut text);
        Bytes::from(text)
    }

    /// A round of the interval.
    pub fn round(&self) {
        let Some(Spooling { batches, .. }) = &self.spooling else { return };
        let mut last = self.last();
        let round = batches.begin(sources::reading::now());
        let mut rounds = last.collector.round(&self.options, sources::ALL, Some(round));
        let events = rounds.iter_mut().flat_map(|round| std::mem::take(&mut round.events)).collect();
        if let (Err(error), Some(first)) = (last.collector.save(), rounds.first_mut()) {
            let text = format!("what was seen can't be kept, and may be told again after a restart: {error}");
            first.remarks.push(text);
        }
        batches.end(losses(&rounds), events);
        (self.tell)(&rounds);
        last.rounds = Some((Instant::now(), rounds));
    }
}

fn losses(rounds: &[SourceRound]) -> Vec<Loss> {
    let all = json::losses(rounds).into_iter();
    all.map(|loss| Loss {
        name: loss.name.into(),
        source: loss.source,
        target: loss.target.unwrap_or_default(),
        count: loss.count,
        detail: notes::shortened(&loss.detail),
    })
    .collect()
}

/// Serves until the process ends. `ready` gets the address, whose port may have been 0.
///
/// # Errors
/// The address is not of the loopback interface, or is in use.
pub fn serve(metrics: Arc<Metrics>, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    if !address.ip().is_loopback() {
        let why =
            "only addresses of the loopback interface (127.0.0.1, ::1) are served without authentication";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        ready(listener.local_addr()?);
        listen(listener, metrics).await
    })
}

async fn listen(listener: TcpListener, metrics: Arc<Metrics>) -> io::Result<()> {
    let turns = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let runtime = tokio::task::LocalSet::new();
    runtime
        .run_until(async {
            loop {
                let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return Ok(()) };
                let Ok((stream, _)) = listener.accept().await else {
                    // No descriptors left: they come back when connections end.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let metrics = Arc::clone(&metrics);
                tokio::task::spawn_local(async move {
                    let service = service_fn(move |request| answer(Arc::clone(&metrics), request));
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEAD)
                        .serve_connection(TokioIo::new(stream), service);
                    // Whatever becomes of one connection is no other's business.
                    let _ = tokio::time::timeout(LONGEST, connection).await;
                    drop(turn);
                });
            }
        })
        .await
}

async fn answer(
    metrics: Arc<Metrics>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let answer = match request.uri().path() {
        _ if !is_read => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"),
        "/metrics" => match spawn_blocking(move || metrics.text()).await {
            Ok(text) => with_type(StatusCode::OK, OPEN_METRICS, text),
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a mistake in iodock\n"),
        },
        "/" => plain(StatusCode::OK, "iodock-agent: /metrics\n"),
        _ => plain(StatusCode::NOT_FOUND, "there is /metrics\n"),
    };
    Ok(answer)
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with_type(status, TEXT, Bytes::from_static(text.as_bytes()))
}

fn with_type(status: StatusCode, kind: &'static str, text: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    }
    answer
}
