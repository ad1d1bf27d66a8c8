//! TLS to servers: whose certificates are believed.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// What connections over TLS begin with.
///
/// * `authorities`: a file of certificates in PEM that are believed instead of the public ones.
///
/// # Errors
/// A text with the file and what is the matter with it.
pub(in crate::engine::remote) fn connector(
    authorities: Option<&Path>,
) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match authorities {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let bytes = std::fs::read(file).map_err(|error| told(&error))?;
            for certificate in CertificateDer::pem_slice_iter(&bytes) {
                let certificate = certificate.map_err(|error| told(&error))?;
                roots.add(certificate).map_err(|error| told(&error))?;
            }
            if roots.is_empty() {
                return Err(told(&"there is no certificate in it"));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
