//! Reads the files with the agent's credentials and with the trusted certificate authorities.

use super::{Push, Wrong};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use ureq::tls::{parse_pem, Certificate, ClientCert, PemItem, PrivateKey};

/// Largest size of such a file in bytes.
const LONGEST_BYTES: u64 = 4 << 20;
/// Files with the certificate authorities of Debian, Red Hat and SUSE.
const SYSTEMS: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/var/lib/ca-certificates/ca-bundle.pem",
];

fn read(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    let file = File::open(path)?;
    let (mode, mut text) = (file.metadata()?.mode(), Vec::new());
    file.take(LONGEST_BYTES).read_to_end(&mut text)?;
    Ok((text, mode))
}

pub fn content(option: &str, path: &Path) -> Result<Vec<u8>, Wrong> {
    let (text, _) = read(path).map_err(|error| unreadable(option, path, &error))?;
    Ok(text)
}

fn unreadable(option: &str, path: &Path, error: &io::Error) -> Wrong {
    Wrong::new(format!("{option} {}: {error}", path.display()), "a file that the agent's user may read")
}

/// Reads a file, and requires that only its owner may read it.
pub fn secret(option: &str, path: &Path) -> Result<Vec<u8>, Wrong> {
    let (text, mode) = read(path).map_err(|error| unreadable(option, path, &error))?;
    match mode & 0o077 {
        0 => Ok(text),
        _ => Err(Wrong::new(
            format!("{option} {}: others may read it", path.display()),
            format!("chmod 600 {}", path.display()),
        )),
    }
}

/// Returns the token, which is one line.
pub fn token(push: &Push) -> Result<Option<String>, Wrong> {
    push.token.as_deref().map(|path| token_of("--token-file", path)).transpose()
}

/// Reads the token from the file of an option.
pub fn token_of(option: &str, path: &Path) -> Result<String, Wrong> {
    let text = secret(option, path)?;
    let token = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let wrong = || {
        Wrong::new(
            format!("{option} {}: must be a file with one line that contains a token", path.display()),
            "the token and nothing else",
        )
    };
    is_token.then_some(token).ok_or_else(wrong)
}

pub fn own_files_belong_together(certificate: &str, key: &str) -> Wrong {
    Wrong::new(format!("{certificate} and {key} belong together"), "give both")
}

/// Returns the authorities that may have signed the collector's certificate.
pub fn authorities(push: &Push) -> Result<Vec<Certificate<'static>>, Wrong> {
    let (option, path) = match &push.authorities {
        Some(path) => ("--ca", path.as_path()),
        None => {
            let is_there = |path: &&Path| path.exists();
            let mut systems = SYSTEMS.iter().map(Path::new);
            let none = || Wrong::new("this system has no certificates", "--ca FILE");
            ("the system's", systems.find(is_there).ok_or_else(none)?)
        }
    };
    certificates(option, path)
}

/// Returns the agent's own certificate and key.
pub fn own(push: &Push) -> Result<Option<ClientCert>, Wrong> {
    match (&push.certificate, &push.key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let chain = certificates("--cert", certificate)?;
            let text = secret("--key", key)?;
            let wrong = |_| {
                Wrong::new(
                    format!("--key {}: no key in it that can be read", key.display()),
                    "PEM, without a password",
                )
            };
            let key = PrivateKey::from_pem(&text).map_err(wrong)?;
            Ok(Some(ClientCert::new_with_certs(&chain, key)))
        }
        _ => Err(own_files_belong_together("--cert", "--key")),
    }
}

fn certificates(option: &str, path: &Path) -> Result<Vec<Certificate<'static>>, Wrong> {
    let text = content(option, path)?;
    let found: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match found.is_empty() {
        true => Err(Wrong::new(
            format!("{option} {}: no certificate in it", path.display()),
            "a file in PEM form",
        )),
        false => Ok(found),
    }
}
