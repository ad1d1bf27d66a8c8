//! Headers of the `decisio` dialect: what a request may say in them, and what a response does.

use std::time::Duration;

use crate::dialect::problem::RequestFault;
use crate::dialect::{Debug, ECHO_CHARS_MAX, Headed};
use crate::question::answer::Cost;
use crate::service::Decided;

/// Longest list of tasks in a header.
const TASKS_BYTES_MAX: usize = 1_024;

const ROUTE: [&str; 2] = ["x-decisio-route", "x-rlcd-route"];
const DEBUG: [&str; 2] = ["x-decisio-debug", "x-rlcd-debug"];

/// All headers that are read.
pub const ALL: [&str; 4] = [ROUTE[0], ROUTE[1], DEBUG[0], DEBUG[1]];

/// Reads the headers of a request; the earlier `x-rlcd-*` names hold where the new ones are absent.
///
/// # Errors
/// A value that there is not, the image route, and debugging where it is not allowed.
pub(in crate::dialect) fn read(
    header: &dyn Fn(&str) -> Option<String>,
    debug_allowed: bool,
) -> Result<Headed, RequestFault> {
    let named =
        |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, header(name)?)));
    let mut headed = Headed::default();
    if let Some((name, route)) = named(ROUTE) {
        headed.image_route = match route.as_str() {
            "text" => Some(false),
            "image" => Some(true),
            _ => return Err(fault(name, "must be text or image", &route)),
        };
    }
    if let Some((name, debug)) = named(DEBUG) {
        if !debug_allowed {
            let message = "the server was not started with --debug-readout".to_owned();
            return Err(RequestFault::DialectHeader { name, message });
        }
        headed.debug = match debug.as_str() {
            "readout" => Some(Debug::Readout),
            "hidden" => Some(Debug::Hidden),
            _ => return Err(fault(name, "must be readout or hidden", &debug)),
        };
    }
    Ok(headed)
}

fn fault(name: &'static str, must: &str, found: &str) -> RequestFault {
    let found: String = found.chars().take(ECHO_CHARS_MAX).collect();
    RequestFault::DialectHeader { name, message: format!("{must}, not {found:?}") }
}

/// What a response says of an answered decision; `total` is from the request's first byte to now.
///
/// `engine` and `wait` of the stages are all of the total: what is waited for, in the queue, behind
/// registrations or for the step of others to end, is `wait`.
pub(in crate::dialect) fn of(decided: &Decided, total: Duration) -> Vec<(&'static str, String)> {
    let cost = &decided.cost;
    let wait = waited(cost);
    let engine = total.saturating_sub(wait);
    let (warm, questions) = (cost.state_time, questions(cost));
    let prepare = cost.prepare.min(engine.saturating_sub(warm + questions));
    let readout = engine.saturating_sub(warm + questions + prepare);
    let stages = [
        ("prepare", prepare),
        ("warm", warm),
        ("questions", questions),
        ("readout", readout),
        ("engine", engine),
        ("wait", wait),
    ];
    let stages = stages.map(|(name, time)| format!("{name}={}", ms(time))).join(";");
    let mut headers = vec![
        ("x-decisio-server-ms", ms(total)),
        ("x-decisio-route", "text".to_owned()),
        ("x-decisio-stages", stages),
    ];
    if !decided.tasks.is_empty() {
        headers.push(("x-decisio-tasks", listed(&decided.tasks)));
    }
    if cost.behind_registration {
        headers.push(("x-decisio-wait-behind", "registration".to_owned()));
    }
    headers
}

/// Ids with commas between, as many as fit.
fn listed(ids: &[String]) -> String {
    let mut list = String::new();
    for id in ids {
        if list.len() + id.len() < TASKS_BYTES_MAX {
            list.push_str(if list.is_empty() { "" } else { "," });
            list.push_str(id);
        }
    }
    list
}

/// All waiting: what of the time between admission and the last outcome was none of its own steps.
pub(super) fn waited(cost: &Cost) -> Duration {
    admitted(cost).saturating_sub(cost.state_time + cost.steps_time)
}

/// Steps that read its questions; one that completed the state as well counts with the state.
pub(super) fn questions(cost: &Cost) -> Duration {
    cost.steps_time.min(admitted(cost).saturating_sub(cost.state_time))
}

/// From admission to the last outcome.
fn admitted(cost: &Cost) -> Duration {
    cost.queue_wait + cost.state_wait + cost.engine_wait + cost.engine_time
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
