//! Serves `/metrics` for Prometheus and other readers of its format. A request gets a new round, or the last
//! round that was made at the interval. It also serves the spool, from which a collector can pull.

mod guard;
mod pulled;
mod slots;

pub use guard::{Guard, Keys};
pub use pulled::Pulled;
pub use slots::raise_open_files;

use slots::{ConnectionSlot, ConnectionSlots};

use crate::batches::Batches;
use crate::collection::{Collector, Options, SourceRound};
use crate::events::memory::Memory;
use crate::push::Wrong;
use crate::spool::Spool;
use crate::{clock, exposition, json, notes, sources};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue, ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use iodock_samples::batch::{Loss, TIME_HEADER};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_blocking;

/// Time for which an answer is reused, so that frequent requests do not load the machine.
const FRESH: Duration = Duration::from_secs(1);
/// Time for which a round made for the collector also answers requests, so that the machine is not read
/// twice.
const RECENT: Duration = Duration::from_secs(15);
/// Time limits: one for each of the TLS handshake, a request's head and its body, and one for the whole
/// connection.
const HEAD: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Function that receives each round.
pub type Tell = Box<dyn Fn(&[SourceRound]) + Send + Sync>;

/// Makes the metrics that are served.
pub struct Metrics {
    options: Options,
    host: String,
    tell: Tell,
    spooling: Option<Spooling>,
    last: Mutex<Last>,
}

/// The batches and the spool into which rounds for the collector go.
#[derive(Clone)]
pub struct Spooling {
    pub batches: Arc<Batches>,
    pub spool: Arc<Spool>,
}

#[derive(Default)]
struct Last {
    collector: Collector,
    /// Time and result of the last round that was made at the interval.
    rounds: Option<(Instant, Vec<SourceRound>)>,
    answer: Option<(Instant, Bytes)>,
}

impl Metrics {
    /// Creates the metrics. `memory` contains the reported events, if events are sent.
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

    /// Returns a round as OpenMetrics text. It is at most [`FRESH`] old, or [`RECENT`] if it was made at the
    /// interval. A new round takes as long as the slowest source, and at most until the deadline.
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
        // Writing into memory can't fail.
        let _ = exposition::write(rounds, &self.host, state, &mut text);
        Bytes::from(text)
    }

    /// Makes a round for the collector. It is called at each interval.
    pub fn round(&self) {
        let Some(Spooling { batches, .. }) = &self.spooling else { return };
        let mut last = self.last();
        let round = batches.begin(clock::now());
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

/// All data that are served, and the access control.
pub struct Served {
    pub metrics: Arc<Metrics>,
    pub pulled: Option<Pulled>,
    pub guard: Guard,
}

/// Serves requests until the process ends. `ready` gets the address of the metrics, because port 0 stands for
/// any free port.
///
/// # Errors
/// Fails if the address must not be served, or if it is in use.
pub fn serve(served: Served, address: SocketAddr, ready: impl FnOnce(String)) -> Result<(), Wrong> {
    served.guard.check(address)?;
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind(address).await?;
            let scheme = if served.guard.tls().is_some() { "https" } else { "http" };
            ready(format!("{scheme}://{}/metrics", listener.local_addr()?));
            listen(listener, Arc::new(served)).await
        })
    };
    run().map_err(|error: io::Error| {
        Wrong::new(format!("--listen {address}: {error}"), "another address or port")
    })
}

async fn listen(listener: TcpListener, served: Arc<Served>) -> io::Result<()> {
    let places = Rc::new(ConnectionSlots::default());
    let runtime = tokio::task::LocalSet::new();
    runtime
        .run_until(async {
            loop {
                let Ok((stream, address)) = listener.accept().await else {
                    // The process has no free descriptor. One becomes free when a connection ends.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                // Without a free slot, because all other connections are being answered, the new connection
                // is closed.
                let Some(place) = places.enter(address.ip()) else { continue };
                let (served, place) = (Arc::clone(&served), Rc::new(place));
                let kept = Rc::clone(&place);
                let connection = tokio::task::spawn_local(async move {
                    // An error on one connection must not affect the others, so it is ignored.
                    let _ = tokio::time::timeout(LONGEST, follow(stream, served, kept)).await;
                });
                place.ended_by(connection.abort_handle());
                // This lets an aborted connection release its descriptor before the next one is accepted.
                tokio::task::yield_now().await;
            }
        })
        .await
}

/// Handles one connection. If it must use TLS or a certificate and does not, it is closed without an answer.
async fn follow(stream: TcpStream, served: Arc<Served>, place: Rc<ConnectionSlot>) {
    match served.guard.tls().cloned() {
        None => requests(stream, served, place).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, tls.accept(stream)).await {
                requests(stream, served, place).await;
            }
        }
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    served: Arc<Served>,
    place: Rc<ConnectionSlot>,
) {
    let service = service_fn(move |request| answer(Arc::clone(&served), request, Rc::clone(&place)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let _ = connection.await;
}

async fn answer(
    served: Arc<Served>,
    request: Request<Incoming>,
    place: Rc<ConnectionSlot>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if !served.guard.lets_in(request.headers()) {
        let mut refusal = plain(StatusCode::UNAUTHORIZED, "a token is needed\n");
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Ok(refusal);
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let answer = match request.uri().path() {
        pulled::PATH if served.pulled.is_some() => samples(served, request, &place).await,
        _ if !is_read => not_allowed("only GET\n", "GET, HEAD"),
        "/metrics" => match place.answering(spawn_blocking(move || served.metrics.text())).await {
            Ok(text) => with_type(StatusCode::OK, OPEN_METRICS, text),
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a mistake in iodock\n"),
        },
        "/" => plain(StatusCode::OK, "iodock-agent: /metrics\n"),
        _ => plain(StatusCode::NOT_FOUND, "there is /metrics\n"),
    };
    Ok(answer)
}

/// Answers the pull request of a collector.
async fn samples(
    served: Arc<Served>,
    request: Request<Incoming>,
    place: &ConnectionSlot,
) -> Response<Full<Bytes>> {
    if *request.method() != Method::POST {
        return not_allowed("only POST\n", "POST");
    }
    if !served.guard.knows_name(request.headers()) {
        return plain(StatusCode::FORBIDDEN, "ask for 127.0.0.1 or localhost\n");
    }
    // This check excludes web pages: a browser sends this type to another origin only after a preflight
    // request.
    if request.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a pull is application/json\n");
    }
    let body = Limited::new(request.into_body(), pulled::LONGEST_REQUEST).collect();
    let Ok(body) = tokio::time::timeout(HEAD, body).await else {
        return plain(StatusCode::REQUEST_TIMEOUT, "a pull took too long to arrive\n");
    };
    let Ok(body) = body else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "too long for a pull\n");
    };
    let Ok(asked) = serde_json::from_slice(&body.to_bytes()) else {
        return plain(StatusCode::BAD_REQUEST, "not a pull\n");
    };
    let read = move || served.pulled.as_ref().map(|pulled| pulled.answer(&asked));
    match place.answering(spawn_blocking(read)).await {
        Ok(Some(Ok(found))) => frames(found),
        Ok(Some(Err(why))) => plain(StatusCode::BAD_REQUEST, why),
        Ok(None) | Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a mistake in iodock\n"),
    }
}

fn frames(found: pulled::Answer) -> Response<Full<Bytes>> {
    let mut answer = with_type(StatusCode::OK, pulled::TYPE, found.frames);
    let more = if found.has_more { "yes" } else { "no" };
    for (name, value) in [
        ("iodock-host", HeaderValue::from_bytes(found.host.as_bytes())),
        ("iodock-spool", HeaderValue::from_str(&found.spool)),
        ("iodock-more", Ok(HeaderValue::from_static(more))),
        (TIME_HEADER, Ok(HeaderValue::from(clock::now()))),
    ] {
        // A host name with a line break is not a valid header value, so it is left out.
        if let Ok(value) = value {
            answer.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    answer
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with_type(status, TEXT, Bytes::from_static(text.as_bytes()))
}

fn not_allowed(text: &'static str, allowed: &'static str) -> Response<Full<Bytes>> {
    let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, text);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn with_type(status: StatusCode, kind: &'static str, text: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
