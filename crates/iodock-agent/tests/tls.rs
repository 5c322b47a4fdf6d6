//! Tests that the collector and the agent each prove their identity with a certificate.

mod running;
mod tree;

use running::collector::{Collector, Conduct};
use running::site::{assert_all, fixture, has_kept, Site};
use running::{batches, wait_for};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

fn pem<T: PemObject>(name: &str) -> T {
    T::from_pem_file(fixture(name)).expect("a fixture")
}

fn tls_collector(asks_who: bool) -> Collector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let mut roots = RootCertStore::empty();
    roots.add(pem::<CertificateDer>("authority.pem")).expect("an authority");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match asks_who {
        true => builder.with_client_cert_verifier(verifier.build().expect("a verifier")),
        false => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(vec![pem("server.pem")], pem::<PrivateKeyDer>("server.key"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    Collector::listen(listener, Conduct::Keep, Some(Arc::new(config.expect("a pair"))))
}

#[test]
fn the_agent_verifies_the_collectors_certificate() {
    let collector = tls_collector(false);
    let site = Site::new("push-tls", &collector.url()).with("--ca", &fixture("authority.pem"));
    let agent = site.start();
    has_kept(&collector, 3);
    assert_all(&collector.kept());
    drop(agent);
    for (name, url, ca) in [
        ("stranger", collector.url(), "stranger.pem"),
        // The collector's certificate does not contain this name.
        ("name", collector.url().replace("127.0.0.1", "localhost"), "authority.pem"),
    ] {
        let before = collector.kept().len();
        let site = Site::new(&format!("push-tls-{name}"), &url).with("--ca", &fixture(ca));
        let agent = site.start();
        agent.says("note: push: ");
        assert!(agent.said().contains("certificate"), "{}", agent.said());
        wait_for("rounds", || (batches(&site.spool).len() > 5).then_some(()));
        assert_eq!(collector.kept().len(), before);
    }
}

#[test]
fn the_agent_authenticates_with_its_certificate() {
    let collector = tls_collector(true);
    let site = Site::new("push-mutual", &collector.url()).with("--ca", &fixture("authority.pem"));
    let agent = site.start();
    agent.says("note: push: ");
    assert!(collector.kept().is_empty());
    agent.kill();
    let key = site.file("key", fs::read(fixture("client.key")).expect("a key"), 0o600);
    let site = site.with("--cert", &fixture("client.pem")).with("--key", &key);
    let agent = site.start();
    has_kept(&collector, 3);
    assert_all(&collector.kept());
    drop(agent);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).expect("set");
    assert!(site.ends().contains("others may read it"));
}
