//! The certificate in force: read at the start, and again when one of its files changes or a SIGHUP
//! comes.
//!
//! Files that do not go together leave the old certificate in force: whoever renews one writes two
//! files, and between them they never match.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::StartError;
use super::reread::{self, Read};
use crate::config::TlsFiles;
use crate::http::serve::{Pair, Tls};
use crate::telemetry;
use crate::watched::Stamp;

/// The certificate of a server that has one.
#[derive(Debug, Clone)]
pub(super) struct Certificates {
    tls: Arc<Tls>,
    files: TlsFiles,
    /// What the files were before they were read.
    seen: Vec<Option<Stamp>>,
}

impl Certificates {
    /// Reads the certificate of the configuration; `None` where it has none.
    ///
    /// # Errors
    /// [`StartError::Setting`] with the file and what is the matter.
    pub(super) async fn load(files: Option<&TlsFiles>) -> Result<Option<Self>, StartError> {
        let Some(files) = files.cloned() else { return Ok(None) };
        let seen = reread::stamps(&paths(&files));
        let pair = Pair::read(&files.certificate, &files.key).await.map_err(|fault| {
            let is_of_key = fault.path == files.key;
            let flag = if is_of_key { "--tls-key" } else { "--tls-cert" };
            StartError::Setting { flag, message: fault.to_string() }
        })?;
        if let Some(warning) = seen[1].as_ref().and_then(Stamp::warning) {
            tracing::warn!("--tls-key {}: {warning}", files.key.display());
        }
        let tls = Tls::new(pair).map_err(|error| StartError::System(format!("TLS: {error}")))?;
        Ok(Some(Self { tls: Arc::new(tls), files, seen }))
    }

    /// What connections begin with. The files are read again whenever that is called for, for ever.
    ///
    /// # Errors
    /// [`StartError::System`] when the system gives no handler for the signal.
    pub(super) fn watched(self) -> Result<Arc<Tls>, StartError> {
        let (tls, files, seen) = (Arc::clone(&self.tls), paths(&self.files), self.seen.clone());
        reread::follow(files, seen, move || {
            let certificates = self.clone();
            async move { certificates.read_again().await }.boxed()
        })?;
        Ok(tls)
    }

    async fn read_again(&self) -> Read {
        match Pair::read(&self.files.certificate, &self.files.key).await {
            Ok(pair) => {
                self.tls.replace(pair);
                telemetry::tls_reloaded(false);
                tracing::info!("the certificate was read again and is in force");
                Read::Settled
            }
            Err(fault) => {
                telemetry::tls_reloaded(true);
                let told = format!("the certificate cannot be used, the old one stays: {fault}");
                Read::failed(fault.passes, told)
            }
        }
    }
}

fn paths(files: &TlsFiles) -> Vec<PathBuf> {
    vec![files.certificate.clone(), files.key.clone()]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// Certificate and key in PEM, for `name`.
    fn made(name: &str) -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn written(certificate: &str, key: &str) -> (TempDir, TlsFiles) {
        let folder = TempDir::new().unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
        };
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        (folder, files)
    }

    async fn refused(certificate: &str, key: &str) -> String {
        let (_folder, files) = written(certificate, key);
        Certificates::load(Some(&files)).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn without_files_there_is_no_tls() {
        assert!(Certificates::load(None).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_start_names_the_file_and_its_fault_and_nothing_of_what_is_in_it() {
        let ((certificate, key), (_, other)) = (made("a.test"), made("b.test"));
        let damaged = certificate.replacen("MII", "M!I", 1);
        let passphrase = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        let cut = &key[..key.len() / 2];
        for (certificate, key, flag, why) in [
            ("", key.as_str(), "--tls-cert", "cert.pem: it has no certificate"),
            (&damaged, &key, "--tls-cert", "cert.pem: it is no PEM"),
            (&certificate, "", "--tls-key", "key.pem: it has no private key"),
            (&certificate, cut, "--tls-key", "key.pem: it has no private key"),
            (&certificate, &passphrase, "--tls-key", "key.pem: the key has a passphrase"),
            (&certificate, &other, "--tls-key", "key.pem: it is not the key of the certificate"),
        ] {
            let told = refused(certificate, key).await;
            assert!(told.starts_with(flag) && told.contains(why), "{told}");
            let secret = key.lines().nth(1).unwrap_or("none at all");
            assert!(!told.contains(secret) && !told.contains("MII"), "{told}");
        }
        let (folder, mut files) = written(&certificate, &key);
        files.key = folder.path().to_path_buf();
        let told = Certificates::load(Some(&files)).await.unwrap_err().to_string();
        assert!(told.starts_with("--tls-key") && told.contains("it is no file"), "{told}");
        files.key = folder.path().join("absent.pem");
        let told = Certificates::load(Some(&files)).await.unwrap_err().to_string();
        assert!(told.contains("absent.pem: No such file"), "{told}");
    }
}
