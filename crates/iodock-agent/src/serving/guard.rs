//! Controls access. On the loopback interface, every client is accepted unless a token or certificate is
//! configured. On other addresses, clients must present one of them, and only over TLS.

use crate::push::files::{content, own_files_belong_together, secret, token_of};
use crate::push::Wrong;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::uri::Authority;
use hyper::HeaderMap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Files with credentials.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// File with the token that clients must present.
    pub token: Option<PathBuf>,
    /// File with the agent's own certificate.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// File with the authority that must have signed the certificate of a client.
    pub authority: Option<PathBuf>,
}

#[derive(Clone, Default)]
pub struct Guard {
    token: Option<Arc<str>>,
    tls: Option<TlsAcceptor>,
    asks_for_certificate: bool,
}

impl Guard {
    /// Reads the files with credentials.
    ///
    /// # Errors
    /// Fails if a file is unusable, missing, or readable by other users.
    pub fn new(keys: &Keys) -> Result<Guard, Wrong> {
        let token = keys.token.as_deref().map(|path| token_of("--listen-token-file", path)).transpose()?;
        let config = match (&keys.certificate, &keys.key) {
            (Some(certificate), Some(key)) => Some(config(certificate, key, keys.authority.as_deref())?),
            (None, None) if keys.authority.is_none() => None,
            (None, None) => {
                return Err(Wrong::new("--listen-ca needs TLS", "--listen-cert FILE --listen-key FILE"))
            }
            _ => return Err(own_files_belong_together("--listen-cert", "--listen-key")),
        };
        let tls = config.map(|config| TlsAcceptor::from(Arc::new(config)));
        Ok(Guard { token: token.map(Arc::from), tls, asks_for_certificate: keys.authority.is_some() })
    }

    /// Checks that the credentials suffice for an address.
    ///
    /// # Errors
    /// Fails if the address requires credentials that are not configured.
    pub fn check(&self, address: SocketAddr) -> Result<(), Wrong> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        let wrong = |why: &str, hint: &str| Err(Wrong::new(format!("--listen {address}: {why}"), hint));
        match (self.is_open(), &self.tls) {
            (true, _) => wrong(
                "beyond the loopback interface (127.0.0.1, ::1) it must be known who asks",
                "--listen-token-file FILE or --listen-ca FILE, with --listen-cert FILE --listen-key FILE",
            ),
            (false, None) => {
                wrong("the token would travel in the clear", "--listen-cert FILE --listen-key FILE")
            }
            (false, Some(_)) => Ok(()),
        }
    }

    /// Returns whether every client is accepted.
    pub fn is_open(&self) -> bool {
        self.token.is_none() && !self.asks_for_certificate
    }

    pub fn tls(&self) -> Option<&TlsAcceptor> {
        self.tls.as_ref()
    }

    /// Returns whether a request's head contains the required token, if there is one. TLS has checked
    /// certificates before.
    pub fn lets_in(&self, head: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = head.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, secret)| {
            scheme.eq_ignore_ascii_case("bearer") && is_same(secret.trim().as_bytes(), token.as_bytes())
        })
    }

    /// Returns whether the requested host name is allowed. If clients need no credentials, only loopback
    /// names are: otherwise a web page in a browser on this machine could send requests through its own host
    /// name that resolves to this address.
    pub fn knows_name(&self, head: &HeaderMap) -> bool {
        let authority = head.get(HOST).and_then(|value| Authority::try_from(value.as_bytes()).ok());
        let name = authority.as_ref().map_or("", |authority| authority.host().trim_matches(['[', ']']));
        let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        !self.is_open() || is_loopback || name.eq_ignore_ascii_case("localhost")
    }
}

/// Compares in constant time, so that timing does not show the position of a difference.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |found, (one, other)| black_box(found | (one ^ other)));
    one.len() == other.len() && differences == 0
}

fn config(certificate: &Path, key: &Path, authority: Option<&Path>) -> Result<ServerConfig, Wrong> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let wrong = |error: rustls::Error| {
        Wrong::new(format!("--listen-cert {}: {error}", certificate.display()), "a certificate and its key")
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = match authority {
        Some(path) => builder.with_client_cert_verifier(verifier(path, provider)?),
        None => builder.with_no_client_auth(),
    };
    let text = secret("--listen-key", key)?;
    let no_key = |_| {
        let what = format!("--listen-key {}: no key in it that can be read", key.display());
        Wrong::new(what, "PEM, without a password")
    };
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(no_key)?;
    builder.with_single_cert(certificates("--listen-cert", certificate)?, key).map_err(wrong)
}

fn verifier(
    path: &Path,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Wrong> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates("--listen-ca", path)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| {
        Wrong::new(format!("--listen-ca {}: {error}", path.display()), "certificates of authorities, PEM")
    })
}

fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let text = content(option, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let none =
        || Wrong::new(format!("{option} {}: no certificate in it", path.display()), "a file in PEM form");
    found.ok().filter(|found| !found.is_empty()).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn with_token() -> Guard {
        Guard { token: Some("abc-123".into()), ..Guard::default() }
    }

    fn head(name: hyper::header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn requests_without_the_right_token_are_refused() {
        for (shown, is_let_in) in [
            ("Bearer abc-123", true),
            ("bearer  abc-123 ", true),
            ("Bearer abc-124", false),
            ("Bearer abc-12", false),
            ("Bearer abc-1234", false),
            ("Bearer ", false),
            ("Bearer", false),
            ("Basic abc-123", false),
            ("abc-123", false),
        ] {
            assert_eq!(with_token().lets_in(&head(AUTHORIZATION, shown)), is_let_in, "{shown}");
        }
        assert!(!with_token().lets_in(&HeaderMap::new()));
        assert!(Guard::default().lets_in(&HeaderMap::new()));
    }

    #[test]
    fn without_authentication_only_local_host_names_are_accepted() {
        for (name, is_known) in [
            ("127.0.0.1:9846", true),
            ("127.0.0.1", true),
            ("localhost:1", true),
            ("LOCALHOST", true),
            ("[::1]:9846", true),
            ("[::1]", true),
            ("evil.example:9846", false),
            ("127.0.0.1.evil.example", false),
            ("10.0.0.1:9846", false),
            ("", false),
        ] {
            assert_eq!(Guard::default().knows_name(&head(HOST, name)), is_known, "{name}");
        }
        assert!(with_token().knows_name(&head(HOST, "oss07.example")));
    }

    #[test]
    fn remote_addresses_require_authentication() {
        let (here, elsewhere) = (([127, 0, 0, 1], 1).into(), ([192, 0, 2, 1], 1).into());
        assert!(Guard::default().check(here).is_ok() && with_token().check(here).is_ok());
        let why = |guard: Guard| guard.check(elsewhere).err().map(|wrong| wrong.what).unwrap_or_default();
        assert!(why(Guard::default()).contains("it must be known who asks"));
        assert!(why(with_token()).contains("in the clear"));
    }
}
