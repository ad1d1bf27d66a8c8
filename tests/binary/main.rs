//! The running binary: starts, answers, keeps states, stops.
//!
//! Goal: what users get holds through the real process and real HTTP. Method: the built `docket` on a
//! free port, over the fake engine or, where it is installed, `SmolLM2` (`skipped: no model` otherwise;
//! `DOCKET_TEST_REQUIRE_MODEL=smollm2:135m` makes a missing model a failure).

#[cfg(test)]
mod determinism;
#[cfg(test)]
mod document;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod exposition;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod loading;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod prewarming;
#[cfg(test)]
mod residency;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod server;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod strategies;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod vectors;
#[cfg(test)]
#[path = "../golden/writers"]
#[expect(dead_code, reason = "the golden tests write more")]
mod writers {
    pub(crate) mod foreign;
    pub(crate) mod gguf;
    pub(crate) mod vocabulary;
    pub(crate) mod wide;
}
