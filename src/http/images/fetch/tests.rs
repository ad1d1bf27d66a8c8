//! Fetching: goal: nothing is connected to that is not public, and no server can make a fetch take
//! longer, read more or go elsewhere than it may. Method: lookups and connections are written down,
//! and servers on the loopback address answer as they are told.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ureq::unversioned::transport::{ConnectionDetails, Transport};

use super::super::remote;
use super::super::samples::{exif, gif, jpeg, jpeg_with_exif, png};
use super::*;

/// Answers with one list of addresses after the other, the last again and again.
#[derive(Debug)]
struct Told {
    answers: Vec<Vec<&'static str>>,
    asked: Arc<AtomicUsize>,
}

impl Lookup for Told {
    fn addresses(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = &self.answers[asked.min(self.answers.len() - 1)];
        Ok(answer.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).collect())
    }
}

/// Writes down where a connection would have gone, and gives an answer in place of one.
#[derive(Debug)]
struct Noted {
    connected: Arc<Mutex<Vec<SocketAddr>>>,
    server: SocketAddr,
}

impl Connector for Noted {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        self.connected.lock().unwrap().extend(details.addrs.iter());
        let mut addrs = details.resolver.empty();
        addrs.push(self.server);
        let details = ConnectionDetails {
            uri: details.uri,
            addrs,
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: Arc::clone(&details.current_time),
            run_connector: Arc::clone(&details.run_connector),
            register_shutdown: Arc::clone(&details.register_shutdown),
        };
        DefaultConnector::new().connect(&details, chained)
    }
}

/// A server that answers its n-th connection with what `answer` writes; ends with the process.
fn server(
    answer: impl Fn(usize, &str, &mut TcpStream) -> io::Result<()> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            for _ in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {}
            // Clients that have seen enough hang up.
            let _ = answer(number, &first, &mut stream);
        }
    });
    address
}

fn respond(stream: &mut TcpStream, head: &str, body: &[u8]) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

/// A server with this answer for everybody.
fn fixed(head: &'static str, body: Vec<u8>) -> SocketAddr {
    server(move |_, _, stream| respond(stream, head, &body))
}

fn open() -> ImageFetching {
    ImageFetching { allow_http: true, allow_private: true, ..ImageFetching::default() }
}

fn to(url: &str, rules: ImageFetching) -> Remote {
    let url = remote::parse(url, rules).unwrap();
    Remote { url, name: Some("n".to_owned()), description: None }
}

fn fetch_with(fetcher: &Fetcher, url: &str) -> Result<Image, FetchFault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(fetcher.fetch(to(url, fetcher.rules), ImageRules::ALL))
}

/// Fetches from a server on this machine, as the server may allow.
fn fetch(server: SocketAddr) -> Result<Image, FetchFault> {
    fetch_with(&Fetcher::new(open()), &format!("http://{server}/a/b.png"))
}

/// What a fetch of `url` came to, how often names were asked for, and what was connected to, with
/// lookups that answer so and a server that does.
fn noted(
    url: &str,
    answers: &[&[&'static str]],
    server: SocketAddr,
) -> (Result<Image, FetchFault>, usize, Vec<SocketAddr>) {
    let rules = ImageFetching { allow_http: true, ..ImageFetching::default() };
    let (asked, connected) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let answers = answers.iter().map(|answer| answer.to_vec()).collect();
    let lookup = Told { answers, asked: Arc::clone(&asked) };
    let connector = Noted { connected: Arc::clone(&connected), server };
    let fetched = fetch_with(&Fetcher::with(rules, lookup, connector), url);
    let connected = connected.lock().unwrap().clone();
    (fetched, asked.load(Ordering::SeqCst), connected)
}

#[test]
fn an_image_is_fetched_with_what_the_request_says_of_it() {
    let file = jpeg_with_exif(&exif(6), 40, 30);
    let body = file.clone();
    let address = server(move |_, line, stream| {
        assert_eq!(line, "GET /a/b.png HTTP/1.1");
        respond(stream, "200 OK\r\nContent-Type: image/jpeg", &body)
    });
    let image = fetch(address).unwrap();
    assert_eq!((image.header.width, image.header.height, image.header.orientation), (30, 40, 6));
    assert_eq!((&image.file[..], image.name.as_deref()), (&file[..], Some("n")));
}

#[test]
fn case_53_a_name_that_stands_for_a_private_address_is_not_connected_to() {
    let server = fixed("200 OK", png(1, 1));
    for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fe80::1"]
    {
        let (fetched, asked, connected) = noted("http://example.com/", &[&[address]], server);
        assert_eq!((fetched, asked), (Err(FetchFault::NoPublicAddress), 1), "{address}");
        assert_eq!(connected, [], "{address}");
    }
    let (fetched, _, connected) = noted("http://example.com/", &[&[]], server);
    assert_eq!((fetched, connected), (Err(FetchFault::NoPublicAddress), vec![]));
}

#[test]
fn of_several_addresses_only_public_ones_are_connected_to() {
    let server = fixed("200 OK", png(1, 1));
    let told: &[&str] = &["10.0.0.1", "1.1.1.1", "::1"];
    let (fetched, _, connected) = noted("http://example.com:81/", &[told], server);
    assert!(fetched.is_ok(), "{fetched:?}");
    assert_eq!(connected, ["1.1.1.1:81".parse().unwrap()]);
}

#[test]
fn case_53_a_name_that_is_rebound_is_connected_to_where_it_was_checked() {
    let server = fixed("200 OK", png(1, 1));
    let rebound: &[&[&str]] = &[&["1.1.1.1"], &["127.0.0.1"]];
    let (fetched, asked, connected) = noted("http://example.com/", rebound, server);
    assert!(fetched.is_ok(), "{fetched:?}");
    assert_eq!((asked, connected), (1, vec!["1.1.1.1:80".parse().unwrap()]));
}

#[test]
fn case_53_a_name_that_is_rebound_between_hops_is_checked_again() {
    let server = fixed("302 Found\r\nLocation: /b.png", Vec::new());
    let rebound: &[&[&str]] = &[&["1.1.1.1"], &["127.0.0.1"]];
    let (fetched, asked, connected) = noted("http://example.com/a.png", rebound, server);
    assert_eq!((fetched, asked), (Err(FetchFault::NoPublicAddress), 2));
    assert_eq!(connected, ["1.1.1.1:80".parse().unwrap()]);
}

#[test]
fn case_53_a_redirect_to_what_is_not_fetched_is_not_followed() {
    for (location, expected) in [
        ("http://169.254.169.254/latest/meta-data", UrlFault::NotPublic),
        ("http://[::1]/", UrlFault::NotPublic),
        ("http://0x7f.1/", UrlFault::NotPublic),
        ("//localhost/", UrlFault::NotPublic),
        ("http://u:p@example.com/", UrlFault::Credentials),
        ("file:///etc/passwd", UrlFault::Scheme { scheme: "file".to_owned() }),
        ("ftp://example.com/", UrlFault::Scheme { scheme: "ftp".to_owned() }),
    ] {
        let server = server(move |_, _, stream| {
            respond(stream, &format!("302 Found\r\nLocation: {location}"), b"")
        });
        let (fetched, asked, connected) = noted("http://example.com/", &[&["1.1.1.1"]], server);
        assert_eq!(fetched, Err(FetchFault::Redirect(expected)), "{location}");
        assert_eq!((asked, connected.len()), (1, 1), "{location}");
    }
}

#[test]
fn a_redirect_from_tls_to_none_is_not_followed() {
    let strict = ImageFetching::default();
    let url = remote::parse("https://example.com/", strict).unwrap();
    assert_eq!(redirected(&url, "http://example.com/", strict), Err(UrlFault::PlainHttp));
}

#[test]
fn three_redirects_are_followed_and_no_fourth() {
    let chain = |length: usize| {
        let body = png(1, 1);
        server(move |number, _, stream| {
            if number < length {
                respond(stream, "307 Temporary Redirect\r\nLocation: ../next", b"")
            } else {
                respond(stream, "200 OK", &body)
            }
        })
    };
    assert!(fetch(chain(3)).is_ok());
    assert_eq!(fetch(chain(4)), Err(FetchFault::TooManyRedirects { count_max: 3 }));
    assert_eq!(fetch(fixed("302 Found", Vec::new())), Err(FetchFault::NoTarget));
}

#[test]
fn other_answers_than_an_image_are_refused() {
    assert_eq!(fetch(fixed("404 Not Found", png(1, 1))), Err(FetchFault::Status { status: 404 }));
    assert_eq!(fetch(fixed("204 No Content", vec![])), Err(FetchFault::Status { status: 204 }));
    assert_eq!(fetch(fixed("200 OK", Vec::new())), Err(FetchFault::Bad(BadImage::Empty)));
    let unknown = fetch(fixed("200 OK\r\nContent-Type: image/png", gif())).unwrap_err();
    assert!(unknown.to_string().starts_with("is not a PNG, JPEG or WebP file"), "{unknown}");
    let other = fetch(fixed("200 OK\r\nContent-Type: text/html", png(1, 1))).unwrap_err();
    assert!(other.to_string().starts_with("is declared as text/html"), "{other}");
    assert!(fetch(fixed("200 OK\r\nContent-Type: image/jpg", jpeg(1, 1))).is_ok());
    assert!(fetch(fixed("200 OK\r\nContent-Type: application/octet-stream", jpeg(1, 1))).is_ok());
    let large = fetch(fixed("200 OK", png(40_000, 40_000))).unwrap_err();
    assert!(large.to_string().contains("40000 x 40000 pixels"), "{large}");
}

#[test]
fn a_broken_answer_is_refused() {
    for answer in ["", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nabc"] {
        let server = server(move |_, _, stream| stream.write_all(answer.as_bytes()));
        assert_eq!(fetch(server), Err(FetchFault::Broken), "{answer}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(fetch(nobody), Err(FetchFault::Broken));
}

#[test]
fn a_body_that_is_announced_too_long_is_not_read() {
    let server = server(|_, _, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", (20 << 20) + 1)
    });
    let expected = BadImage::TooLarge { bytes: (20 << 20) + 1, bytes_max: 20 << 20 };
    assert_eq!(fetch(server), Err(FetchFault::Bad(expected)));
}

/// A server that sends `start` and zeros without end, and counts what it got rid of.
fn endless(start: Vec<u8>) -> (SocketAddr, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let address = server(move |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        stream.write_all(&start)?;
        let zeros = vec![0; 64 << 10];
        loop {
            stream.write_all(&zeros)?;
            counted.fetch_add(zeros.len(), Ordering::SeqCst);
        }
    });
    (address, sent)
}

#[test]
fn a_body_without_end_is_read_up_to_the_limit() {
    let (server, sent) = endless(png(1, 1));
    let fault = fetch(server).unwrap_err();
    assert!(matches!(fault, FetchFault::Bad(BadImage::TooLarge { .. })), "{fault:?}");
    // Beside what was read, what lay in the sockets.
    assert!(sent.load(Ordering::SeqCst) < 40 << 20, "{sent:?}");
}

#[test]
fn a_body_that_begins_as_no_image_is_not_read_on() {
    let (server, sent) = endless(b"<!doctype html><html>".to_vec());
    let fault = fetch(server).unwrap_err();
    assert!(matches!(fault, FetchFault::Bad(BadImage::UnknownFormat { .. })), "{fault:?}");
    assert!(sent.load(Ordering::SeqCst) < 20 << 20, "{sent:?}");
}

#[test]
fn a_server_that_stalls_or_trickles_is_left_at_the_time_limit() {
    let timeout = Duration::from_millis(200);
    let stalled: fn(usize, &str, &mut TcpStream) -> io::Result<()> = |_, _, stream| {
        // Waits until the client hangs up.
        Read::read(stream, &mut [0]).map(|_| ())
    };
    let trickling: fn(usize, &str, &mut TcpStream) -> io::Result<()> = |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
        stream.set_read_timeout(Some(Duration::from_millis(5)))?;
        // The pause between two bytes is the wait for a client that says nothing.
        while Read::read(stream, &mut [0]).is_err() {
            stream.write_all(&[0])?;
        }
        Ok(())
    };
    for answer in [stalled, trickling] {
        let fetcher = Fetcher::new(ImageFetching { timeout, ..open() });
        let began = Instant::now();
        let fetched = fetch_with(&fetcher, &format!("http://{}/", server(answer)));
        assert_eq!(fetched, Err(FetchFault::Timeout { limit: timeout }));
        assert!(began.elapsed() >= timeout && began.elapsed() < 20 * timeout);
    }
}

#[tokio::test(start_paused = true)]
async fn more_fetches_than_places_wait_up_to_the_time_limit() {
    let fetcher = Fetcher::new(open());
    let held = Arc::clone(&fetcher.places).acquire_many_owned(8).await.unwrap();
    let url = "http://127.0.0.1:1/";
    let began = tokio::time::Instant::now();
    let fetched = fetcher.fetch(to(url, open()), ImageRules::ALL).await;
    let waited = IMAGE_FETCH_TIMEOUT;
    assert_eq!(fetched, Err(FetchFault::Busy { waited, count_max: 8 }));
    assert_eq!(began.elapsed(), waited);
    drop(held);
}

#[test]
fn no_message_has_anything_of_a_url() {
    for fault in [
        FetchFault::Busy { waited: IMAGE_FETCH_TIMEOUT, count_max: 8 },
        FetchFault::Redirect(UrlFault::Scheme { scheme: "ftp".to_owned() }),
        FetchFault::Status { status: 500 },
    ] {
        assert!(!fault.to_string().contains("://"), "{fault}");
    }
}
