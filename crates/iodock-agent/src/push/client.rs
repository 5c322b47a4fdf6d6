//! Sends requests to the collector. It does not follow redirects and uses no proxies, because these would
//! receive the token.

use super::{files, Push, Wrong};
use crate::clock::now;
use crate::sample::printable;
use iodock_samples::batch::{Receipt, TIME_HEADER};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Response, StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

const PATH: &str = "/api/v1/samples";
const TYPE: &str = "application/x-iodock-samples";
/// Longest answer in bytes. A receipt has about 40.
const LONGEST_ANSWER: u64 = 16 << 10;
const LONGEST_COMPLAINT: usize = 200;
/// Time for which an idle connection is reused. It is longer than the usual interval between rounds, and
/// shorter than the 75 s for which collectors keep connections.
const IDLE: Duration = Duration::from_secs(65);

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Receipt(Receipt),
    /// The sender is not authorised.
    Unauthorised(String),
    /// The collector will never accept the batch.
    Refused(String),
    /// The request failed, and the agent tries it again later.
    Failed(String),
}

/// A client with the collector's address and the agent's credentials.
pub struct Client {
    agent: Agent,
    address: String,
    token: Option<String>,
}

impl Client {
    /// Creates a client. The complete answer to a request must arrive within `patience`.
    ///
    /// # Errors
    /// Fails if the address is invalid, if the token must not be sent to it, or if a file cannot be used.
    pub fn new(push: &Push, patience: Duration) -> Result<Client, Wrong> {
        let url = push.url.as_deref().unwrap_or_default();
        let is_encrypted = check(url, push.is_insecure)?;
        let token = files::token(push)?;
        let mut config = Agent::config_builder()
            .timeout_global(Some(patience))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(16 << 10)
            .user_agent(concat!("iodock-agent/", env!("CARGO_PKG_VERSION")))
            .proxy(None)
            .max_idle_age(IDLE);
        if is_encrypted {
            let roots = RootCerts::Specific(Arc::new(files::authorities(push)?));
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = TlsConfig::builder()
                .root_certs(roots)
                .client_cert(files::own(push)?)
                .unversioned_rustls_crypto_provider(provider);
            config = config.tls_config(tls.build());
        }
        let address = format!("{}{PATH}", url.trim_end_matches('/'));
        Ok(Client { agent: config.build().new_agent(), address, token })
    }

    pub fn post(&self, frames: &[u8]) -> Answer {
        let mut request = self
            .agent
            .post(&self.address)
            .header("Content-Type", TYPE)
            .header(TIME_HEADER, now().to_string());
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        match request.send(frames) {
            Ok(response) => read(response),
            Err(error) => Answer::Failed(told(&error.to_string())),
        }
    }
}

fn read(mut response: Response<Body>) -> Answer {
    let status = response.status();
    let text = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
    match status {
        StatusCode::OK => match text {
            Ok(text) => serde_json::from_slice(&text).map_or_else(
                |_| {
                    Answer::Failed(format!(
                        "the answer is no receipt: {}",
                        told(&String::from_utf8_lossy(&text))
                    ))
                },
                Answer::Receipt,
            ),
            Err(error) => Answer::Failed(told(&error.to_string())),
        },
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Answer::Unauthorised(complaint(status, text)),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
            Answer::Refused(complaint(status, text))
        }
        _ if status.is_redirection() => {
            Answer::Failed(format!("status {status}: another address, which is not followed"))
        }
        _ => Answer::Failed(complaint(status, text)),
    }
}

fn complaint(status: StatusCode, text: Result<Vec<u8>, ureq::Error>) -> String {
    let text = text.unwrap_or_default();
    let text = told(&String::from_utf8_lossy(text.trim_ascii()));
    if text.is_empty() {
        format!("status {status}")
    } else {
        format!("status {status}: {text}")
    }
}

/// Shortens text and makes it printable, for a message.
fn told(text: &str) -> String {
    let shown = printable(text.as_bytes());
    shown.chars().take(LONGEST_COMPLAINT).collect()
}

/// Checks the address. Returns whether the connection is encrypted.
fn check(url: &str, is_insecure: bool) -> Result<bool, Wrong> {
    let example = "as https://monitor.example:9847";
    let wrong = |why: &str| Wrong::new(format!("--push {}: {why}", told(url)), example);
    let uri: Uri = url.parse().map_err(|_| wrong("not an address"))?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("not an address"))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) || uri.query().is_some() {
        return Err(wrong("no names, passwords or questions in it"));
    }
    match uri.scheme_str() {
        Some("https") => Ok(true),
        Some("http") if is_insecure || is_loopback(host) => Ok(false),
        Some("http") => Err(Wrong::new(
            format!("--push {}: the token and the jobs could be read on the way", told(url)),
            "https://, or --insecure if nobody listens there",
        )),
        _ => Err(wrong("neither https:// nor http://")),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_only_over_encrypted_connections() {
        let is_allowed = |url, is_insecure| check(url, is_insecure).map_err(|wrong| wrong.what);
        assert_eq!(is_allowed("https://monitor.example", false), Ok(true));
        for url in ["http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:80/", "http://localhost:9/x"] {
            assert_eq!(is_allowed(url, false), Ok(false), "{url}");
        }
        for url in [
            "http://monitor.example",
            "http://127.0.0.1.example",
            "http://localhost.example",
            "http://10.0.0.1",
        ] {
            assert!(
                is_allowed(url, false).is_err_and(|why| why.contains("could be read on the way")),
                "{url}"
            );
            assert_eq!(is_allowed(url, true), Ok(false));
        }
        for url in [
            "",
            "monitor",
            "ftp://a",
            "http://",
            "https://a@b",
            "https://u:p@b/",
            "https://a/?x=1",
            "http://127.0.0.1@evil.example",
        ] {
            assert!(is_allowed(url, true).is_err(), "{url}");
        }
    }
}
