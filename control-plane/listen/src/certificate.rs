//! Certificates and keys in PEM, read with errors that say what is wrong with which file.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::error::ListenError;
use super::node_names::NodeNames;

/// The cryptography of every TLS connection of this process.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificate authorities in a file; at least one.
///
/// # Errors
///
/// What is wrong with the file, with its name.
pub fn authorities(file: &Path, bytes: &[u8]) -> Result<RootCertStore, ListenError> {
    read_authorities(file, bytes).map_err(ListenError::File)
}

pub(super) fn read_authorities(file: &Path, bytes: &[u8]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for (number, authority) in certificates(file, bytes)?.into_iter().enumerate() {
        store.add(authority).map_err(|error| {
            format!("{}: certificate {} cannot be an authority: {error}", file.display(), number + 1)
        })?;
    }
    Ok(store)
}

/// The certificate chain of a server, with its key.
pub(super) fn certified_key(files: (&Path, &Path), bytes: (&[u8], &[u8])) -> Result<CertifiedKey, String> {
    let (file, key_file) = (files.0.display(), files.1.display());
    let chain = certificates(files.0, bytes.0)?;
    let key = key(files.1, bytes.1)?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            format!("the key in {key_file} is not that of the first certificate in {file}")
        }
        Error::InvalidCertificate(error) => format!("{file}: the first certificate cannot be used: {error:?}"),
        // Of a kind or size that is not supported; the message has nothing of the key.
        error => format!("{key_file}: the private key cannot be used: {error}"),
    })
}

/// When a certificate ends, in seconds since 1970. `None` where that is not known.
pub(super) fn expiry(certificate: &CertificateDer<'_>) -> Option<u64> {
    let certificate = Certificate::from_der(certificate).ok()?;
    Some(certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs())
}

/// The nodes that a certificate is for: its DNS names, its URIs, and its common name where it has neither. None where it
/// cannot be read.
pub(super) fn node_names(certificate: &CertificateDer<'_>) -> NodeNames {
    let Ok(certificate) = Certificate::from_der(certificate) else { return NodeNames::any_of([]) };
    let certificate = certificate.tbs_certificate();
    let alternatives = certificate.get_extension::<SubjectAltName>().ok().flatten();
    let alternatives = alternatives.into_iter().flat_map(|(_, names)| names.0);
    let names: Vec<String> = alternatives
        .filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(name.to_string()),
            // Only a DNS name can stand for several.
            GeneralName::UniformResourceIdentifier(uri) => Some(uri.to_string()).filter(|uri| !uri.contains('*')),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        return NodeNames::any_of(names);
    }
    let common = certificate.subject().common_name().ok().flatten().map(|name| name.value().into_owned());
    NodeNames::any_of(common.filter(|name| !name.contains('*')))
}

fn certificates(file: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let problem = |what: &str| format!("{}: {what}", file.display());
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bytes) {
        let number = found.len() + 1;
        found
            .push(certificate.map_err(|error| problem(&format!("certificate {number} is not PEM: {}", said(&error))))?);
    }
    match found.is_empty() {
        true => Err(problem("it contains no certificate in PEM (`-----BEGIN CERTIFICATE-----`)")),
        false => Ok(found),
    }
}

fn key(file: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let problem = |what: &str| format!("{}: {what}", file.display());
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => problem(
            "there is no private key in PEM in it (PKCS#8, PKCS#1 or SEC1; one that is encrypted cannot be used)",
        ),
        error => problem(&format!("the private key is not PEM: {}", said(&error))),
    })
}

/// What is wrong, without any of the bytes: the file may hold a secret.
fn said(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "its END line is missing; was the file written to its end?",
        pem::Error::IllegalSectionStart { .. } => "its BEGIN line is malformed",
        pem::Error::Base64Decode(_) => "it is not base64",
        pem::Error::SectionTooLarge => "it is too large",
        _ => "it cannot be read",
    }
}
