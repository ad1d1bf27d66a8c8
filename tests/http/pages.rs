//! Pages for people: whole, from here alone, small, kept by browsers for as long as they are true, and
//! open to who has no key.
//!
//! Method: follow every link of a page to a file, as a browser would, on a server with keys.

use std::collections::BTreeMap;

use axum::Router;
use axum::http::Request;

use crate::support::{Reply, call, request, with_keys};

/// Most bytes of all files of all pages.
const BYTES_MAX: usize = 300_000;

async fn got(router: &Router, method: &str, path: &str) -> Reply {
    call(router, request(method, path, "")).await
}

/// Files that a text names: those with an extension, below the folders of pages.
fn named(text: &str) -> Vec<String> {
    let folders = ["/play/", "/live/", "/docs/"];
    let quoted = text.split('"').skip(1).step_by(2);
    let absolute =
        quoted.clone().filter(|name| folders.iter().any(|folder| name.starts_with(folder)));
    let beside = quoted.filter_map(|name| name.strip_prefix("./"));
    absolute.map(str::to_owned).chain(beside.map(|name| format!("/play/{name}"))).collect()
}

/// Every file of every page by its path, from a server that asks everybody else for a key.
async fn all(router: &Router) -> BTreeMap<String, Reply> {
    let mut found = BTreeMap::new();
    let mut open = vec!["/".to_owned(), "/live".to_owned(), "/docs".to_owned()];
    while let Some(path) = open.pop() {
        if found.contains_key(&path) {
            continue;
        }
        let reply = got(router, "GET", &path).await;
        assert_eq!(reply.status, 200, "{path}");
        open.extend(named(std::str::from_utf8(&reply.body).unwrap()));
        found.insert(path, reply);
    }
    assert!(found.len() > 20, "{:?}", found.keys());
    found
}

fn media(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        None => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some(_) => "text/javascript; charset=utf-8",
    }
}

#[tokio::test]
async fn every_file_is_there_without_a_key_and_says_what_it_may_do() {
    let router = with_keys(&["secret"]);
    let files = all(&router).await;
    for (path, reply) in &files {
        assert_eq!(reply.header("content-type"), media(path), "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
    }
    assert!(files.values().map(|reply| reply.body.len()).sum::<usize>() < BYTES_MAX);
}

#[tokio::test]
async fn pages_load_nothing_from_elsewhere_and_make_no_markup_of_text() {
    for (path, reply) in all(&with_keys(&["secret"])).await {
        let text = String::from_utf8(reply.body).unwrap();
        for banned in
            ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("]
        {
            assert!(!text.contains(banned), "{path} has {banned}");
        }
        for inline in
            ["style=", "<style", "onclick=\"", "javascript:", "localStorage", "sessionStorage"]
        {
            assert!(!text.contains(inline), "{path} has {inline}");
        }
        assert!(!text.contains("document.cookie") && !text.contains("indexedDB"), "{path}");
    }
}

#[tokio::test]
async fn a_file_that_a_browser_has_is_not_sent_again() {
    let router = with_keys(&["secret"]);
    for (path, reply) in all(&router).await {
        assert_eq!(reply.header("cache-control"), "no-cache", "{path}");
        let etag = reply.header("etag");
        assert!(etag.len() > 10 && etag.starts_with('"') && etag.ends_with('"'), "{path}: {etag}");
        let weak = format!("\"other\", W/{etag}");
        for (known, status) in [(etag, 304), (&weak, 304), ("*", 304), ("\"other\"", 200)] {
            let sent = Request::get(&path).header("if-none-match", known).body("".into()).unwrap();
            let again = call(&router, sent).await;
            assert_eq!(again.status, status, "{path} {known}");
            assert_eq!(again.body.is_empty(), status == 304, "{path} {known}");
            assert_eq!(again.header("etag"), etag, "{path} {known}");
        }
    }
}

#[tokio::test]
async fn a_page_is_looked_at_and_nothing_else() {
    let router = with_keys(&["secret"]);
    for (path, reply) in all(&router).await {
        let head = got(&router, "HEAD", &path).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("content-length"), reply.body.len().to_string(), "{path}");
        assert_eq!(head.header("etag"), reply.header("etag"), "{path}");
        for method in ["POST", "PUT", "DELETE"] {
            assert_eq!(got(&router, method, &path).await.status, 405, "{method} {path}");
        }
    }
    for path in ["/play/x", "/play/main.js.map", "/play/%2e%2e", "/play/index.html"] {
        assert_eq!(
            got(&router, "GET", path).await.failure(),
            (404, "not_found".to_owned()),
            "{path}"
        );
    }
}
