//! Flags of the engines that ask other servers.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::set;
use crate::cli::listed::Listed;
use crate::config::Config;
use crate::config::keys::Secret;
use crate::config::quantity::parse_duration;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The engine")]
#[expect(clippy::struct_field_names, reason = "clap knows flags by their fields' names")]
pub(super) struct RemoteArgs {
    /// Address of a server that runs the model, http://HOST:PORT, for --engine vllm, sglang or
    /// llama-server; repeatable, and split at commas in the environment variable [default: none]
    #[arg(long, env = "DOCKET_ENGINE_URL", value_name = "URL")]
    engine_url: Vec<Listed>,

    /// Key that lets docket into these servers, sent as a bearer token; by the environment rather than
    /// by the flag, which other users of the machine can see [default: none]
    #[arg(long, env = "DOCKET_ENGINE_KEY", value_name = "KEY", hide_env_values = true)]
    engine_key: Option<Listed>,

    /// File with that key [default: none]
    #[arg(long, env = "DOCKET_ENGINE_KEY_FILE", value_name = "FILE")]
    engine_key_file: Option<PathBuf>,

    /// How requests to them name the model [default: what each server calls it]
    #[arg(long, env = "DOCKET_ENGINE_MODEL", value_name = "NAME")]
    engine_model: Option<String>,

    /// Certificates in PEM that are believed of them instead of the public ones [default: none]
    #[arg(long, env = "DOCKET_ENGINE_CA", value_name = "FILE")]
    engine_ca: Option<PathBuf>,

    /// Requests to one of them that may be under way [default: 32]
    #[arg(long, env = "DOCKET_ENGINE_WINDOW", value_name = "COUNT")]
    engine_window: Option<u32>,

    /// Longest time of one request to them [default: 60s]
    #[arg(long, env = "DOCKET_ENGINE_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    engine_timeout: Option<Duration>,

    /// How long what was certainly not executed is sent again, and an outage of all waited out
    /// [default: 5s]
    #[arg(long, env = "DOCKET_ENGINE_RETRY_FOR", value_name = "TIME", value_parser = parse_duration)]
    engine_retry_for: Option<Duration>,

    /// How long a start waits for one of them that answers [default: 60s]
    #[arg(long, env = "DOCKET_ENGINE_WAIT", value_name = "TIME", value_parser = parse_duration)]
    engine_wait: Option<Duration>,
}

impl RemoteArgs {
    pub(super) fn fill(self, config: &mut Config) {
        let remote = &mut config.engine.remote;
        remote.urls = Listed::all(self.engine_url);
        // Listed only because that is never shown: a key is one text, commas and all.
        remote.key = self.engine_key.map(|Listed(texts)| Secret::new(texts.join(",")));
        remote.key_file = self.engine_key_file;
        remote.model = self.engine_model;
        remote.authorities = self.engine_ca;
        set(&mut remote.window, self.engine_window);
        set(&mut remote.timeout, self.engine_timeout);
        set(&mut remote.retry_for, self.engine_retry_for);
        set(&mut remote.wait, self.engine_wait);
    }
}
