//! Tests pulling: a collector gets all batches until it acknowledges them, and only with valid credentials.

mod running;
mod tree;

use iodock_samples::batch::Batch;
use running::site::{fixture, Site};
use running::{batches, frames, wait_for, write_opens, Agent};
use rustls::pki_types::ServerName;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

struct Asked {
    head: String,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    fn numbers(&self) -> Vec<u64> {
        frames(&self.body).iter().map(|batch| batch.sequence).collect()
    }
}

fn request(more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /api/v1/samples HTTP/1.1\r\n{more}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

const JSON: &str = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n";

fn ask(agent: &Agent, request: &str) -> Asked {
    let mut stream = TcpStream::connect(agent.address()).expect("it listens");
    stream.set_read_timeout(Some(running::PATIENCE)).expect("set");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    parted(answer)
}

fn parted(answer: Vec<u8>) -> Asked {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    Asked { head: String::from_utf8_lossy(&answer[..end]).into(), body: answer[end + 4..].into() }
}

fn says(spool: &str, kept: u64, more: &str) -> String {
    request(JSON, &format!("{{\"spool\":\"{spool}\",\"kept\":{kept}{more}}}"))
}

fn spool_id(site: &Site) -> String {
    fs::read_to_string(site.spool.join("id")).expect("an id").trim().into()
}

fn pulled(name: &str) -> Site {
    Site::pulled(name)
}

/// Waits until more than `count` batches are in the files. The last one may not be synced yet, so it may not
/// be pulled.
fn has_batches(site: &Site, count: usize) -> Vec<Batch> {
    wait_for("batches", || Some(batches(&site.spool)).filter(|found| found.len() > count))
}

#[test]
fn unacknowledged_batches_are_sent_again() {
    let site = pulled("pulled");
    let agent = site.start();
    has_batches(&site, 3);
    let (first, again) = (ask(&agent, &request(JSON, "{}")), ask(&agent, &request(JSON, "{}")));
    assert_eq!((first.status(), first.header("content-type")), ("200", "application/x-iodock-samples"));
    assert_eq!((first.header("iodock-host"), first.header("iodock-spool")), ("node7", &*spool_id(&site)));
    running::assert_is_now(first.header("iodock-time"));
    assert!(first.numbers().starts_with(&[1, 2]) && again.numbers().starts_with(&first.numbers()));
    let next = ask(&agent, &says(&spool_id(&site), 2, ""));
    assert_eq!(next.numbers()[0], 3);
    wait_for("the count", || agent.metric("iodock_agent_batches_kept_total").filter(|count| *count == 2));
    // A request about another spool, or with an older state, has no effect.
    for said in [says(&"0".repeat(32), 99, ""), says(&spool_id(&site), 1, "")] {
        assert_eq!(ask(&agent, &said).numbers()[0], 3);
    }
    let last = *next.numbers().last().expect("a batch");
    wait_for("the next batch", || ask(&agent, &says(&spool_id(&site), last, "")).numbers().first().copied());
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(0));
}

#[test]
fn a_killed_agent_still_delivers_all_unsent_batches() {
    let site = pulled("pulled-killed");
    let mut known = 0;
    for life in 1..=5 {
        write_opens(&site.tree, life);
        let agent = site.start();
        wait_for("batches of this life", || {
            batches(&site.spool).last().filter(|batch| batch.sequence > known + 2)?;
            let asked = ask(&agent, &says(&spool_id(&site), known, ""));
            let numbers = asked.numbers();
            assert!(numbers.iter().copied().eq(known + 1..=known + numbers.len() as u64), "{numbers:?}");
            // The collector has stored half of the batches. The agent learns this only after its restart.
            known += (numbers.len() as u64).div_ceil(2);
            Some(())
        });
        agent.kill();
    }
    assert!(known >= 5);
}

#[test]
fn only_refused_batches_are_set_aside() {
    let site = pulled("pulled-refused");
    let agent = site.start();
    has_batches(&site, 3);
    let id = spool_id(&site);
    // The agent has sent no batch yet, so the collector can't refuse one.
    ask(&agent, &says(&id, 0, ",\"refused\":true"));
    assert_eq!(agent.metric("iodock_agent_batches_refused_total"), Some(0));
    let given = ask(&agent, &request(JSON, "{}")).numbers();
    assert!(given.starts_with(&[1, 2, 3]));
    assert_eq!(ask(&agent, &says(&id, 1, ",\"refused\":true")).numbers()[0], 3);
    // The agent caches the text of /metrics for a second.
    wait_for("the count", || agent.metric("iodock_agent_batches_refused_total").filter(|count| *count == 1));
    let aside = fs::read(site.spool.join("refused-00000000000000000002.frame")).expect("set aside");
    assert_eq!(frames(&aside)[0].sequence, 2);
    // The agent sends the missing data again with a full round.
    wait_for("a full round", || {
        ask(&agent, &says(&id, 2, ""));
        let later = batches(&site.spool).into_iter().filter(|batch| batch.sequence > 3);
        later.filter(|batch| batch.dropped == 1).find(|batch| batch.parts.iter().any(|part| part.full))
    });
}

#[test]
fn warns_when_the_spool_is_open_to_all_users() {
    let note = "--listen-token-file FILE keeps others out";
    let site = pulled("pulled-open");
    let open = site.start();
    open.address();
    assert!(open.said().contains(note), "{}", open.said());
    let site = pulled("pulled-closed");
    let token = site.file("token", "abc-123\n", 0o600);
    let site = site.with("--listen-token-file", &token);
    let closed = site.start();
    closed.address();
    assert!(!closed.said().contains(note), "{}", closed.said());
}

#[test]
fn an_invalid_pull_request_changes_nothing() {
    let site = pulled("pulled-nonsense");
    let agent = site.start();
    has_batches(&site, 2);
    let id = spool_id(&site);
    let long = format!("{{\"spool\":\"{}\"}}", "x".repeat(9000));
    for (sent, status) in [
        (says(&id, u64::MAX, ""), "400"),
        (request(JSON, "7"), "400"),
        (request(JSON, ""), "400"),
        (request(JSON, "{\"kept\":-1}"), "400"),
        (request(JSON, &long), "413"),
        (request("Host: 127.0.0.1\r\nContent-Type: text/plain\r\n", "{}"), "415"),
        (request("Host: evil.example\r\nContent-Type: application/json\r\n", "{}"), "403"),
        ("GET /api/v1/samples HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".into(), "405"),
    ] {
        assert_eq!(ask(&agent, &sent).status(), status, "{sent}");
    }
    assert_eq!(ask(&agent, &request(JSON, "{}")).numbers()[0], 1);
}

#[test]
fn an_agent_that_pushes_serves_no_spool() {
    let site = Site::spooling("pulled-not");
    let agent = site.start();
    has_batches(&site, 2);
    assert_eq!(ask(&agent, &request(JSON, "{}")).status(), "405");
}

#[test]
fn metrics_and_spool_require_the_token() {
    let site = pulled("pulled-token");
    let token = site.file("token", "abc-123\n", 0o600);
    let site = site.with("--listen-token-file", &token);
    let agent = site.start();
    has_batches(&site, 2);
    let get = |more: &str| format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{more}Connection: close\r\n\r\n");
    for (shown, status) in [
        ("", "401"),
        ("Authorization: Bearer abc-124\r\n", "401"),
        ("Authorization: Bearer abc-123\r\n", "200"),
    ] {
        let asked = ask(&agent, &request(&format!("{JSON}{shown}"), "{}"));
        assert_eq!((asked.status(), asked.numbers().is_empty()), (status, status == "401"), "{shown}");
        assert_eq!(ask(&agent, &get(shown)).status(), status);
    }
}

/// Returns the answer to a pull over TLS, with or without a client certificate.
fn through_tls(agent: &Agent, certificate: Option<&Path>) -> Result<Asked, String> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(fixture("authority.pem")).expect("a fixture"))
        .expect("it is one");
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder =
        builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let chain = vec![CertificateDer::from_pem_file(path).expect("a fixture")];
            let key = PrivateKeyDer::from_pem_file(fixture("client.key")).expect("a fixture");
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect(agent.address()).expect("it listens");
    stream.set_read_timeout(Some(running::PATIENCE)).expect("set");
    let mut stream = rustls::StreamOwned::new(connection, stream);
    stream.write_all(request(JSON, "{}").as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // The agent closed the connection without a TLS closing message.
        Err(error) if answer.is_empty() => Err(error.to_string()),
        _ => Ok(parted(answer)),
    }
}

#[test]
fn only_a_certificate_of_the_authority_is_accepted() {
    let site = pulled("pulled-tls");
    let key = site.file("key", fs::read(fixture("server.key")).expect("a key"), 0o600);
    let site = site.with("--listen-cert", &fixture("server.pem")).with("--listen-key", &key);
    let site = site.with("--listen-ca", &fixture("authority.pem"));
    let agent = site.start();
    has_batches(&site, 2);
    agent.says("note: https://127.0.0.1:");
    let client = fixture("client.pem");
    let known = through_tls(&agent, Some(Path::new(&client))).expect("an answer");
    assert_eq!(known.status(), "200");
    assert_eq!(known.numbers()[0], 1);
    let unknown = through_tls(&agent, None).err().expect("it is refused");
    assert!(unknown.contains("ertificate"), "{unknown}");
}

#[test]
fn addresses_beyond_loopback_require_authentication() {
    let refused = |site: Site, why: &str| {
        let said = site.ends();
        assert!(said.contains("error: --listen") && said.contains("hint: ") && said.contains(why), "{said}");
    };
    let site = |name: &str| pulled(name).with("--listen", "0.0.0.0:0");
    refused(site("pulled-open"), "it must be known who asks");
    let clear = site("pulled-clear");
    let token = clear.file("token", "abc", 0o600);
    refused(clear.with("--listen-token-file", &token), "in the clear");
    let half = site("pulled-half").with("--listen-cert", &fixture("server.pem"));
    refused(half, "--listen-cert and --listen-key belong together");
    refused(site("pulled-ca").with("--listen-ca", &fixture("authority.pem")), "--listen-ca needs TLS");
    let open = site("pulled-key");
    let key = open.file("key", "no key", 0o644);
    let open = open.with("--listen-cert", &fixture("server.pem")).with("--listen-key", &key);
    refused(open, "others may read it");
    let junk = site("pulled-junk");
    let key = junk.file("key", "no key", 0o600);
    let junk = junk.with("--listen-cert", &fixture("server.pem")).with("--listen-key", &key);
    refused(junk, "no key in it");
    // TLS without a client certificate does not authenticate the client.
    let anybody = site("pulled-anybody");
    let key = anybody.file("key", fs::read(fixture("server.key")).expect("a key"), 0o600);
    let anybody = anybody.with("--listen-cert", &fixture("server.pem")).with("--listen-key", &key);
    refused(anybody, "it must be known who asks");
    let both = pulled("pulled-both").with("--push", "http://127.0.0.1:9").ends();
    assert!(both.contains("--push or --serve-spool"), "{both}");
}
