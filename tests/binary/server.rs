//! A docket process on a free port, and a client for it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest time for a server to start; packing the largest model in `f32` takes minutes on a machine
/// that is busy with other things.
const START_MAX: Duration = Duration::from_mins(10);

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    base: String,
    start_peak_kib: u64,
    /// What it wrote to standard error so far, and who reads on.
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

/// A request as it is put on the wire.
#[derive(Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// One without a value is left out, `content-type` too, which is JSON otherwise.
    pub(crate) headers: Vec<(&'a str, Option<&'a str>)>,
    pub(crate) text: Option<String>,
}

/// One response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    headers: Vec<(String, String)>,
}

impl Reply {
    /// A response header.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A response header as a number.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let found = self.headers.iter().find(|(key, _)| key == name);
        let (_, value) = found.unwrap_or_else(|| panic!("no {name} in {self:?}"));
        value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}"))
    }
}

impl Server {
    /// Starts `docket serve --port 0 ARGUMENTS` and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::started(&[&["serve", "--port", "0", "--offline"], arguments].concat())
    }

    /// Likewise `docket gateway --listen 127.0.0.1:0 ARGUMENTS`.
    pub(crate) fn gateway(arguments: &[&str]) -> Self {
        Self::started(&[&["gateway", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    fn started(words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_docket"))
            .args(words)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let log = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let (found, address) = mpsc::channel();
        let told = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&told);
        let reader = std::thread::spawn(move || {
            let address = |line: &str| {
                let (_, address) = line.split_once("listening on ")?;
                Some(address.split('"').next()?.trim().to_owned())
            };
            for line in log.lines().map_while(Result::ok) {
                // The test may be over already.
                let _ = address(&line).map(|address| found.send(address));
                lines.lock().expect("no panic").push(line);
            }
        });
        let began = Instant::now();
        let mut start_peak_kib = 0;
        let base = loop {
            match address.recv_timeout(Duration::from_millis(5)) {
                Ok(base) => break base,
                Err(RecvTimeoutError::Disconnected) => panic!("the server did not start"),
                Err(RecvTimeoutError::Timeout) => {
                    start_peak_kib = start_peak_kib.max(private_kib(child.id()));
                    assert!(began.elapsed() < START_MAX, "no server within {START_MAX:?}");
                }
            }
        };
        Self { child, base, start_peak_kib, log: told, reader: Some(reader) }
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic").clone()
    }

    /// Waits for the end of the process, and for the end of its log.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().expect("the process ends");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        (status, self.log())
    }

    /// Private memory now, and its peak during the start, in KiB.
    pub(crate) fn private_kib(&self) -> (u64, u64) {
        (private_kib(self.child.id()), self.start_peak_kib)
    }

    /// The same over `smollm2:135m`; `None`, with a line that says so, where that is not installed.
    pub(crate) fn smollm2(arguments: &[&str]) -> Option<Self> {
        smollm2_folder().map(|_| Self::start(&[&["smollm2:135m"], arguments].concat()))
    }

    /// Address without a trailing slash.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Posts JSON.
    pub(crate) fn post(&self, route: &str, body: &Value) -> Reply {
        try_post(&self.base, route, body).expect("the server answers")
    }

    /// Sends anything; a body of the response that is no JSON is given as a string.
    pub(crate) fn send(&self, sending: &Sending<'_>) -> Reply {
        let uri = format!("{}{}", self.base, sending.path);
        let mut request = ureq::http::Request::builder().method(sending.method).uri(uri);
        let is_typed = sending.headers.iter().any(|(name, _)| *name == "content-type");
        if sending.text.is_some() && !is_typed {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &sending.headers {
            request = value.iter().fold(request, |request, value| request.header(*name, *value));
        }
        let response = match &sending.text {
            Some(text) => agent().run(request.body(text.as_bytes()).expect("a request")),
            None => agent().run(request.body(()).expect("a request")),
        };
        let mut response = response.expect("the server answers");
        let text = response.body_mut().read_to_string().expect("text");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Reply { status: response.status().as_u16(), headers: headers_of(&response), body }
    }

    /// Asks one yes/no question, in one order.
    pub(crate) fn ask(&self, state: &str, question: &str) -> Reply {
        self.post("/v1/systemone", &decision(state, question))
    }

    /// Gets a page, whatever its status.
    pub(crate) fn try_get(&self, route: &str) -> Result<Reply, ureq::Error> {
        reply_of(agent().get(format!("{}{route}", self.base)).call()?)
    }

    /// Gets a JSON page.
    pub(crate) fn get(&self, route: &str) -> Value {
        let mut response = agent().get(format!("{}{route}", self.base)).call().expect("an answer");
        response.body_mut().read_json().expect("JSON")
    }

    /// Gets a page of text.
    pub(crate) fn page(&self, route: &str) -> String {
        let mut response = agent().get(format!("{}{route}", self.base)).call().expect("an answer");
        response.body_mut().read_to_string().expect("text")
    }

    /// Deletes something; the status.
    pub(crate) fn delete(&self, route: &str) -> u16 {
        let response = agent().delete(format!("{}{route}", self.base)).call().expect("an answer");
        response.status().as_u16()
    }

    /// The value of one series of `/metrics`, named as it stands there; 0 where it is absent.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let text = self.page("/metrics");
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().expect("a whole number"))
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        terminate(&self.child);
    }

    /// Sends SIGHUP.
    pub(crate) fn hang_up(&self) {
        signal(&self.child, "-HUP");
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("the process ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder in which `smollm2:135m` is installed; `None`, with a line that says so, where it is not.
pub(crate) fn smollm2_folder() -> Option<PathBuf> {
    installed("smollm2:135m")
}

/// The same of any model of the catalogue.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let models = Command::new(env!("CARGO_BIN_EXE_docket")).arg("models").output();
    let table = String::from_utf8_lossy(&models.expect("it runs").stdout).into_owned();
    let row = table.lines().find(|line| line.contains(name));
    if row.is_some_and(|row| row.contains("yes")) {
        let home = table.lines().find_map(|line| line.strip_prefix("the models are in "));
        let home = Path::new(home.expect("a line with the folder"));
        return Some(home.join("models").join(name.replace(':', "-")));
    }
    let required = std::env::var_os("DOCKET_TEST_REQUIRE_MODEL").unwrap_or_default();
    let required = required.to_string_lossy();
    assert!(required.split(',').all(|required| required != name), "{name} is required");
    say(&format!("skipped: no model {name}"));
    None
}

/// `RssAnon` and `VmSwap` of a process: memory that is its own and not a file's; 0 before it has any.
fn private_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = |line: &str| line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    let own = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("VmSwap:");
    status.lines().filter(own).filter_map(kib).sum()
}

/// Sends SIGTERM to a process.
pub(crate) fn terminate(child: &Child) {
    signal(child, "-TERM");
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
}

/// A decision with one yes/no question, read in one order.
pub(crate) fn decision(state: &str, question: &str) -> Value {
    json!({ "state": state, "samples": 1,
            "questions": { "q": { "type": "noul", "instructions": question } } })
}

/// Posts JSON to a server that may be gone.
pub(crate) fn try_post(base: &str, route: &str, body: &Value) -> Result<Reply, ureq::Error> {
    reply_of(agent().post(format!("{base}{route}")).send_json(body)?)
}

fn reply_of(mut response: ureq::http::Response<ureq::Body>) -> Result<Reply, ureq::Error> {
    let (status, headers) = (response.status().as_u16(), headers_of(&response));
    Ok(Reply { status, headers, body: response.body_mut().read_json()? })
}

fn headers_of(response: &ureq::http::Response<ureq::Body>) -> Vec<(String, String)> {
    let headers = response.headers().iter();
    headers.map(|(k, v)| (k.to_string(), v.to_str().unwrap_or("").to_owned())).collect()
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

/// Says something past the capture of a passing test's output.
pub(crate) fn say(what: &str) {
    use std::io::Write as _;

    let _ = writeln!(std::io::stderr(), "{what}");
}
