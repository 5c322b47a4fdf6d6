//! A collector for tests, which behaves as the test configures it.

use super::frames;
use iodock_samples::batch::{Batch, Receipt};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{sleep, spawn};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub enum Conduct {
    Keep,
    /// Stores the batches, and then closes the connection without an answer.
    KeepOnce,
    /// Answers with a status and additional header lines.
    Status(u16, String),
    /// Refuses requests with more bytes than this.
    AtMost(usize),
    /// Refuses requests that contain the batch with this number.
    Not(u64),
    /// Stores the batches and requests a full round.
    AskFull,
    /// Claims to have stored all batches up to this number.
    Says(u64),
    /// Never answers.
    Hang,
    /// Answers without an end, byte by byte or as fast as possible.
    Drip,
    Flood,
}

#[derive(Default)]
pub struct Seen {
    /// Headers of all requests.
    pub heads: Vec<String>,
    pub lengths: Vec<usize>,
    /// All batches in order of arrival, including those that were not stored.
    pub batches: Vec<Batch>,
    pub kept: Vec<Batch>,
}

#[derive(Clone)]
pub struct Collector {
    pub address: SocketAddr,
    conduct: Arc<Mutex<Conduct>>,
    seen: Arc<Mutex<Seen>>,
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl Collector {
    pub fn start(conduct: Conduct) -> Self {
        Collector::listen(TcpListener::bind("127.0.0.1:0").expect("a port"), conduct, None)
    }

    pub fn listen(listener: TcpListener, conduct: Conduct, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let address = listener.local_addr().expect("an address");
        let conduct = Arc::new(Mutex::new(conduct));
        let collector = Collector { address, conduct, seen: Arc::default(), tls };
        let serves = collector.clone();
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let serves = serves.clone();
                // An error is ignored, because the agent may disconnect.
                spawn(move || drop(serves.connection(stream)));
            }
        });
        collector
    }

    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    pub fn conduct(&self, conduct: Conduct) {
        *self.conduct.lock().expect("no panic") = conduct;
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no panic")
    }

    /// Returns the numbers of the stored batches, in order of arrival.
    pub fn kept(&self) -> Vec<u64> {
        self.seen().kept.iter().map(|batch| batch.sequence).collect()
    }

    fn connection(&self, stream: TcpStream) -> io::Result<()> {
        match &self.tls {
            None => self.requests(stream),
            Some(config) => {
                let connection =
                    rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                self.requests(rustls::StreamOwned::new(connection, stream))
            }
        }
    }

    fn requests(&self, stream: impl Read + Write) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            let mut body = vec![0; length.expect("a length")];
            stream.read_exact(&mut body)?;
            self.answer(head, &body, stream.get_mut())?;
        }
    }

    fn answer(&self, head: String, body: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let (conduct, sent) = (self.conduct.lock().expect("no panic").clone(), frames(body));
        let last = sent.last().map_or(0, |batch| batch.sequence);
        let mut seen = self.seen();
        seen.heads.push(head);
        seen.lengths.push(body.len());
        seen.batches.extend(sent.clone());
        let receipt = match conduct {
            Conduct::Keep | Conduct::KeepOnce => Receipt { kept: last, full: false },
            Conduct::AskFull => Receipt { kept: last, full: true },
            Conduct::AtMost(most) if body.len() <= most => Receipt { kept: last, full: false },
            Conduct::Not(number) if sent.iter().all(|batch| batch.sequence != number) => {
                Receipt { kept: last, full: false }
            }
            Conduct::Says(kept) => Receipt { kept, full: false },
            _ => {
                drop(seen);
                return misbehave(conduct, out);
            }
        };
        seen.kept.extend(sent);
        drop(seen);
        let text = format!("{{\"kept\": {}, \"full\": {}}}", receipt.kept, receipt.full);
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
        out.flush()?;
        match conduct {
            Conduct::KeepOnce => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }
}

fn misbehave(conduct: Conduct, out: &mut dyn Write) -> io::Result<()> {
    match conduct {
        Conduct::Status(status, more) => {
            write!(out, "HTTP/1.1 {status} no\r\n{more}Content-Length: 2\r\n\r\nno")?;
        }
        Conduct::AtMost(_) => write!(out, "HTTP/1.1 413 Too long\r\nContent-Length: 0\r\n\r\n")?,
        Conduct::Not(_) => write!(out, "HTTP/1.1 400 Bad\r\nContent-Length: 4\r\n\r\nbad\n")?,
        Conduct::Drip => {
            write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
            loop {
                out.write_all(b" ")?;
                out.flush()?;
                sleep(Duration::from_millis(20));
            }
        }
        Conduct::Flood => {
            write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")?;
            loop {
                out.write_all(&[b' '; 4096])?;
            }
        }
        _ => loop {
            sleep(Duration::from_secs(3600));
        },
    }
    out.flush()
}
