//! TLS in front of both versions of HTTP, a certificate that is replaced, and handshakes that fail.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use docket::http::HttpConfig;
use docket::http::serve::{Pair, ServeConfig, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::http2::{post, spoken, text};
use crate::server::{Server, in_time, message, read_response};
use crate::support::{NOUL, Stub};

/// A certificate of `localhost` in PEM that vouches for itself, and its key.
fn made() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

async fn pair(certificate: &str, key: &str) -> Pair {
    let folder = TempDir::new().unwrap();
    let [first, second] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    fs::write(&first, certificate).unwrap();
    fs::write(&second, key).unwrap();
    Pair::read(&first, &second).await.unwrap()
}

/// A server, what it shakes hands with, and the certificate it has.
async fn serving(stub: &Arc<Stub>, config: ServeConfig) -> (Server, Arc<Tls>, String) {
    let (certificate, key) = made();
    let tls = Arc::new(Tls::new(pair(&certificate, &key).await).unwrap());
    let server =
        Server::start_with(stub, HttpConfig::default(), config, Some(Arc::clone(&tls))).await;
    (server, tls, certificate)
}

/// A client that trusts one certificate and speaks what ALPN names.
async fn connect(
    server: &Server,
    trusted: &str,
    alpn: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = server.connect().await;
    in_time(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

async fn is_answered(stream: &mut TlsStream<TcpStream>) -> bool {
    stream.write_all(&message(NOUL)).await.unwrap();
    let (head, body) = in_time(read_response(stream)).await;
    head.starts_with("HTTP/1.1 200") && body.starts_with(b"{\"model\":\"stub\"")
}

#[tokio::test]
async fn http_1_and_2_are_spoken_behind_tls() {
    let stub = Arc::new(Stub::default());
    let (server, _, certificate) = serving(&stub, ServeConfig::default()).await;
    for (alpn, chosen) in [
        (&[][..], None),
        (&["http/1.1"], Some("http/1.1")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["h2"], Some("h2")),
    ] {
        let mut stream = connect(&server, &certificate, alpn).await.unwrap();
        let found = stream.get_ref().1.alpn_protocol();
        assert_eq!(found, chosen.map(str::as_bytes), "{alpn:?}");
        if chosen == Some("h2") {
            let (mut sender, _connection) = spoken(stream).await;
            let response = in_time(sender.send_request(post(NOUL))).await.unwrap();
            assert_eq!(response.status(), 200);
            assert!(text(response).await.contains("stub"));
        } else {
            assert!(is_answered(&mut stream).await && is_answered(&mut stream).await);
        }
    }
    in_time(stub.until(|stub| stub.served.load(Ordering::SeqCst) == 6)).await;
    // HTTP/2 that nobody named.
    let stream = connect(&server, &certificate, &[]).await.unwrap();
    let (mut sender, _connection) = spoken(stream).await;
    assert_eq!(in_time(sender.send_request(post(NOUL))).await.unwrap().status(), 200);
    let refused = connect(&server, &certificate, &["h3"]).await.unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections_and_the_old_ones_go_on() {
    let stub = Arc::new(Stub::default());
    let (server, tls, old) = serving(&stub, ServeConfig::default()).await;
    let mut early = connect(&server, &old, &[]).await.unwrap();
    let (new, key) = made();
    tls.replace(pair(&new, &key).await);
    assert!(connect(&server, &old, &[]).await.is_err());
    assert!(is_answered(&mut connect(&server, &new, &[]).await.unwrap()).await);
    assert!(is_answered(&mut early).await);
}

#[tokio::test]
async fn one_who_speaks_in_clear_is_told_so() {
    let stub = Arc::new(Stub::default());
    let (server, ..) = serving(&stub, ServeConfig::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(&message(NOUL)).await.unwrap();
    let (head, body) = in_time(read_response(&mut stream)).await;
    assert!(head.starts_with("HTTP/1.1 400") && head.contains("connection: close"), "{head}");
    assert_eq!(body, b"this port speaks TLS: use https:\n");
    assert_eq!(in_time(stream.read(&mut [0; 8])).await.unwrap(), 0);
    let mut stream = server.connect().await;
    stream.write_all(&[0, 1, 2, 3, 4, 5, 6, 7]).await.unwrap();
    let mut rest = Vec::new();
    let _ = in_time(stream.read_to_end(&mut rest)).await;
    assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn handshakes_that_stall_hold_nobody_up_and_end() {
    let stub = Arc::new(Stub::default());
    let config =
        ServeConfig { handshake_timeout: Duration::from_millis(200), ..ServeConfig::default() };
    let (server, _, certificate) = serving(&stub, config).await;
    let mut silent = server.connect().await;
    let mut half = server.connect().await;
    half.write_all(&[22, 3, 1, 0]).await.unwrap();
    assert!(is_answered(&mut connect(&server, &certificate, &[]).await.unwrap()).await);
    for stream in [&mut silent, &mut half] {
        let read = in_time(stream.read(&mut [0; 8])).await;
        assert!(read.map_or(true, |read| read == 0));
    }
}

#[tokio::test]
async fn a_stop_ends_handshakes_too() {
    let stub = Arc::new(Stub::default());
    let (mut server, _, certificate) = serving(&stub, ServeConfig::default()).await;
    let _silent = server.connect().await;
    let mut idle = connect(&server, &certificate, &[]).await.unwrap();
    assert!(is_answered(&mut idle).await);
    server.begin_stop();
    assert_eq!(in_time(idle.read(&mut [0; 8])).await.unwrap(), 0);
    assert_eq!(in_time(server.done).await.unwrap(), 0);
}

/// A key on the curve P-256 in SEC1, taken out of its PKCS#8 (RFC 5958, RFC 5915).
fn sec1(pkcs8: &[u8]) -> String {
    use base64::Engine as _;
    // After the sequence, version, and algorithm there is an octet string of the key.
    let at = pkcs8.windows(3).position(|found| found == [0x02, 0x01, 0x01]).unwrap() - 2;
    assert_eq!(pkcs8[at], 0x30);
    let text = base64::engine::general_purpose::STANDARD.encode(&pkcs8[at..]);
    format!("-----BEGIN EC PRIVATE KEY-----\n{text}\n-----END EC PRIVATE KEY-----\n")
}

#[tokio::test]
async fn a_key_may_be_in_sec1_and_a_certificate_may_have_a_chain() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    let chain = format!("a comment\n{}{}", made.cert.pem(), other.cert.pem());
    let pair = pair(&chain, &sec1(&made.signing_key.serialize_der())).await;
    let stub = Arc::new(Stub::default());
    let tls = Some(Arc::new(Tls::new(pair).unwrap()));
    let config = ServeConfig::default();
    let server = Server::start_with(&stub, HttpConfig::default(), config, tls).await;
    let mut stream = connect(&server, &made.cert.pem(), &[]).await.unwrap();
    assert_eq!(stream.get_ref().1.peer_certificates().unwrap().len(), 2);
    assert!(is_answered(&mut stream).await);
}
