//! Images in requests: what is refused without the network, what is fetched, and for whom.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use axum::Router;
use axum::http::Request;
use docket::http::{HttpConfig, ImageFetching, router};
use docket::service::images::{Format, ImageLimits};
use serde_json::json;

use crate::support::{Reply, Stub, call, post};

/// A PNG of 1 x 1 pixels, its header only.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\0\0\0\0";

/// The same as a data URL.
const PNG_URL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAAAAAAAA";

/// A server on this machine that has the image under `/a.png` and nothing else, and counts its
/// connections; ends with the process.
fn server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            for _ in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {}
            let (status, body) = if first.contains("/a.png") {
                ("200 OK", PNG)
            } else {
                ("404 Not Found", &b""[..])
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    (address, connections)
}

/// A router that fetches from this machine, over a stub that sees so many images.
fn over(count_max: Option<usize>) -> (Router, Arc<Stub>) {
    let sees = count_max.map(|count_max| ImageLimits { count_max });
    let stub = Arc::new(Stub { sees, ..Stub::default() });
    let fetching =
        ImageFetching { allow_http: true, allow_private: true, ..ImageFetching::default() };
    let config = HttpConfig { images: fetching, ..HttpConfig::default() };
    (router(Arc::clone(&stub) as Arc<_>, config), stub)
}

fn body(images: &serde_json::Value) -> String {
    let questions = json!({"q": {"type": "noul"}});
    json!({"state": "s", "images": images, "questions": questions}).to_string()
}

async fn ask(router: &Router, images: &serde_json::Value) -> Reply {
    post(router, body(images)).await
}

#[tokio::test]
async fn images_are_fetched_for_a_model_that_sees_them() {
    let ((address, connections), (router, stub)) = (server(), over(Some(2)));
    let url = format!("http://{address}/a.png?key=1");
    let images = json!([{"url": url, "name": "front", "description": "d", "size": 1}, PNG_URL]);
    let reply = ask(&router, &images).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("x-docket-ignored"), r#"["images.0.size"]"#);
    let seen = stub.seen.lock().unwrap();
    let names: Vec<_> = seen.iter().map(|image| image.name.as_deref()).collect();
    assert_eq!(names, [Some("front"), None]);
    for image in seen.iter() {
        let header = image.header;
        assert_eq!((header.format, header.width, header.height), (Format::Png, 1, 1));
        assert_eq!(&image.file[..], PNG);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nothing_is_fetched_for_a_model_that_reads_text() {
    let ((address, connections), (router, stub)) = (server(), over(None));
    let reply = ask(&router, &json!([format!("http://{address}/a.png?key=1")])).await;
    assert_eq!(reply.failure(), (400, "api_usage_error".to_owned()));
    assert_eq!(reply.header("x-docket-reason"), "unsupported");
    let message = reply.json()["detail"]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with(&format!("the first one of http://{address}")), "{message}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn nothing_is_fetched_of_a_request_that_is_refused_anyway() {
    let ((address, connections), (router, _)) = (server(), over(Some(2)));
    let url = format!("http://{address}/a.png");
    for images in [
        json!([url, "ftp://example.com/"]),
        json!([url, "https://u:p@example.com/"]),
        json!([url, {"name": "x"}]),
        json!([url, "data:image/png;base64,AAAA"]),
        json!([url, url, url]),
    ] {
        assert_eq!(ask(&router, &images).await.fault(), "image_invalid", "{images}");
    }
    let unasked = json!({"state": "s", "images": [url], "questions": {}}).to_string();
    assert_eq!(post(&router, unasked).await.fault(), "too_few");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_image_that_cannot_be_fetched_is_told_without_its_url() {
    let ((address, _), (router, stub)) = (server(), over(Some(2)));
    let reply = ask(&router, &json!([PNG_URL, format!("http://{address}/secret.png?k=v")])).await;
    assert_eq!(reply.failure(), (502, "internal_error".to_owned()));
    assert_eq!(reply.header("x-docket-reason"), "image_fetch_failed");
    let expected =
        format!("bad image: image 2 (images[1]) of http://{address} is answered with status 404");
    assert_eq!(reply.json()["detail"]["message"], expected);
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn case_53_private_hosts_are_refused_where_they_are_not_allowed() {
    let (address, connections) = server();
    let stub = Stub { sees: Some(ImageLimits { count_max: 2 }), ..Stub::default() };
    let images = ImageFetching { allow_http: true, ..ImageFetching::default() };
    let router = router(Arc::new(stub), HttpConfig { images, ..HttpConfig::default() });
    let port = address.port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"] {
        let reply = ask(&router, &json!([format!("http://{host}:{port}/a.png")])).await;
        assert_eq!(reply.fault(), "image_invalid", "{host}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_model_says_how_many_images_it_sees() {
    let (router, stub) = over(Some(1));
    assert_eq!(ask(&router, &json!([PNG_URL])).await.status, 200);
    assert_eq!(stub.seen.lock().unwrap().len(), 1);
    let reply = ask(&router, &json!([PNG_URL, PNG_URL])).await;
    assert_eq!(reply.fault(), "image_invalid");
    let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
    assert_eq!(message, "too many images: more than 1 in the request");
}

#[tokio::test]
async fn decisio_takes_no_urls() {
    let (router, _) = over(Some(2));
    for image in [json!("https://example.com/a.png"), json!({"url": PNG_URL})] {
        let request = Request::post("/decisio/v1/systemone").body(body(&json!([image])).into());
        let reply = call(&router, request.unwrap()).await;
        assert_eq!(reply.status, 422, "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains("(images[0]) must be"));
    }
}

/// The form that the official client sends: the request, and a file for each image.
fn form(head: &str) -> Request<axum::body::Body> {
    let request = json!({"state": "s", "questions": {"q": {"type": "noul"}}}).to_string();
    let file = b"--x\r\nContent-Disposition: form-data; name=\"asset-0\"; filename=\"a.png\"\r\n\
                 Content-Type: image/png\r\n\r\n";
    let start = "--x\r\nContent-Disposition: form-data; name=\"request\"\r\n\
                 Content-Type: application/json\r\n\r\n";
    let parts: [&[u8]; 6] =
        [start.as_bytes(), request.as_bytes(), b"\r\n", file, PNG, b"\r\n--x--\r\n"];
    let mut post =
        Request::post("/v1/systemone").header("content-type", "multipart/form-data; boundary=x");
    if let Some((name, value)) = head.split_once(": ") {
        post = post.header(name, value);
    }
    post.body(parts.concat().into()).unwrap()
}

#[tokio::test]
async fn the_form_of_the_official_client_is_read() {
    let (router, stub) = over(Some(2));
    let reply = call(&router, form("")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(stub.seen.lock().unwrap().len(), 1);
    let (router, _) = over(None);
    assert_eq!(call(&router, form("")).await.failure(), (400, "api_usage_error".to_owned()));
}

#[tokio::test]
async fn no_form_is_read_of_a_page_in_a_browser() {
    let (router, stub) = over(Some(2));
    let reply = call(&router, form("origin: https://example.com")).await;
    assert_eq!(reply.failure(), (415, "api_usage_error".to_owned()));
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}
