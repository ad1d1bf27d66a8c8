//! Settings through the process: from a file, from the environment and by flags.

use std::io::Write as _;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::server::{Sending, Server, decision};

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("room");
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().expect("a plain path")
}

/// Runs `docket config ARGUMENTS` with these variables.
fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docket"));
    command.arg("config").args(arguments).envs(variables.iter().copied());
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_server_has_the_settings_of_its_file_and_a_flag_wins() {
    // The harness gives `--port 0`: it wins over this port, on which no test may listen.
    let file = file(
        "[http]\nport = 1\nbody_limit = \"2KiB\"\n[engine]\nengine = \"fake\"\n\
         [model]\nserved_name = [\"from-the-file\"]\n[decisions]\nmax_questions = 1\n\
         [profiles.fast]\nsamples = 1\n",
    );
    let server = Server::start(&["--config", path(&file), "--max-questions", "2"]);
    let shown = &server.get("/health")["details"]["config"];
    assert_eq!(shown["http"]["body_limit"], "2KiB");
    assert_eq!((&shown["http"]["port"], &shown["model"]["offline"]), (&json!(0), &json!(true)));
    assert_eq!(shown["decisions"]["max_questions"], 2);
    assert_eq!(shown["scheduler"]["rows_max"], 64);
    let mut body = decision("The parcel is late.", "Is it late?");
    body["questions"]["r"] = body["questions"]["q"].clone();
    body["profile"] = json!("fast");
    let reply = server.post("/v1/systemone", &body);
    assert_eq!((reply.status, &reply.body["model"]), (200, &json!("from-the-file")), "{reply:?}");
    body["questions"]["s"] = body["questions"]["q"].clone();
    assert_eq!(server.post("/v1/systemone", &body).status, 422);
    assert_eq!(server.ask(&"word ".repeat(1000), "Is it late?").status, 413);
}

#[test]
fn keys_of_a_file_are_in_force_and_not_in_health() {
    let file = file("[http]\napi_key = \"acme=s3cret-of-acme\"\n[engine]\nengine = \"fake\"\n");
    let server = Server::start(&["--config", path(&file)]);
    let health = |key: Option<&str>| {
        let headers = vec![("x-api-key", key)];
        server.send(&Sending { method: "GET", path: "/health", headers, text: None }).body
    };
    assert_eq!(health(None)["details"], Value::Null);
    let details = health(Some("s3cret-of-acme"))["details"].clone();
    assert_eq!(details["config"]["engine"]["engine"], "fake");
    assert!(!details.to_string().contains("s3cret"), "{details}");
}

#[test]
fn what_is_shown_says_where_each_setting_was_said() {
    let file = file("[http]\nport = 9000\nstall_after = \"90s\"\nbody_limit = \"1MiB\"\n");
    let variables = [
        ("DOCKET_CONFIG", path(&file)),
        ("DOCKET_PORT", "9001"),
        ("DOCKET_BODY_LIMIT", "2MiB"),
        ("DOCKET_OFFLINE", ""),
        ("DOCKET_SERVED_NAME", "a,b"),
    ];
    let shown = config(&["show", "--port", "9002"], &variables);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let told = text(&shown.stdout);
    for line in [
        "port = 9002  # flag",
        "body_limit = \"2MiB\"  # DOCKET_BODY_LIMIT",
        "stall_after = \"90s\"  # file",
        "connections_max = 1024  # default",
        "offline = false  # DOCKET_OFFLINE",
        "served_name = [\"a\", \"b\"]  # DOCKET_SERVED_NAME",
    ] {
        assert!(told.lines().any(|shown| shown == line), "{line}: {told}");
    }
}

#[test]
fn a_check_tells_all_faults_with_their_places_or_that_there_is_none() {
    let bad = file("[http]\nport = \"x\"\nbody_limt = 1\n[scheduler]\nrows_max = 0\n");
    let variables = [("DOCKET_THREADS", "0"), ("DOCKET_READS_MAX", "many")];
    let arguments = ["check", "--config", path(&bad), "--layout", "none"];
    let refused = config(&arguments, &variables);
    let told = text(&refused.stderr);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(1), ""), "{told}");
    let expected = [
        "docket: these settings cannot be:",
        "http.body_limt: there is no such setting; body_limit is one",
        "http.port: \"x\": a whole number is wanted",
        "--layout: \"none\" is none of ",
        "DOCKET_READS_MAX: \"many\": a whole number is wanted",
        "DOCKET_THREADS: 0 is not within 1 to 1024",
        "scheduler.rows_max: 0 is not within 1 to 4096",
    ];
    assert_eq!(told.lines().count(), expected.len(), "{told}");
    for (line, expected) in told.lines().zip(expected) {
        assert!(line.starts_with(expected), "{expected}: {told}");
    }
    let keys = config(&["check", "--keys", "no/such/file"], &[]);
    assert_eq!(keys.status.code(), Some(1), "{}", text(&keys.stderr));
    let keys = file("[tenants.a]\nweight = 0\n[tenants.b]\nlane = \"fast\"\n");
    let variables = [("DOCKET_KEYS", path(&keys)), ("DOCKET_TENANT_READ_MAX", "8")];
    let refused = config(&["check", "--threads", "0"], &variables);
    let told = text(&refused.stderr);
    for expected in [
        "--threads: 0 is not within 1 to 1024",
        "DOCKET_KEYS: tenants.a.weight: 0 is not within 1 to 1000",
        "DOCKET_KEYS: tenants.b.lane: this is no lane; ",
        "DOCKET_TENANT_READ_MAX: docket has no such variable, and it sets nothing; \
         DOCKET_TENANT_READS_MAX is one",
    ] {
        assert!(told.lines().any(|line| line.starts_with(expected)), "{expected}: {told}");
    }
    let shown = config(&["show"], &[("DOCKET_TENANT_READ_MAX", "8")]);
    let told = text(&shown.stderr);
    assert!(shown.status.success() && told.contains("DOCKET_TENANT_READS_MAX is one"), "{told}");
    let good = file("[http]\nport = 9000\n");
    let checked = config(&["check", "--config", path(&good), "--offline"], &[]);
    let told = text(&checked.stdout);
    assert!(checked.status.success() && told.lines().count() == 1, "{told}");
    assert!(told.contains("1 by flag, 0 from the environment, 1 from "), "{told}");
}
