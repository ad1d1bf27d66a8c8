//! The running binary: starts, answers, keeps states, stops.
//!
//! Goal: what users get holds through the real process and real HTTP. Method: the built `docket` on a
//! free port, over the fake engine or, where it is installed, `SmolLM2` (`skipped: no model` otherwise;
//! `DOCKET_TEST_REQUIRE_MODEL=smollm2:135m` makes a missing model a failure).

#[cfg(test)]
mod determinism;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod loading;
#[cfg(test)]
mod residency;
#[cfg(test)]
mod server;
