//! The HTTP layer against what is promised of it: the router is called directly where that is
//! enough, and over real sockets where time, order or a disconnect is the point. The service behind
//! it is a stub, so no model is needed.

#[cfg(test)]
mod access;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod batches;
#[cfg(test)]
mod bodies;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod cors;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod http2;
#[cfg(test)]
mod images;
#[cfg(test)]
mod logging;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod prewarming;
#[cfg(test)]
mod server;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod state_keys;
#[cfg(test)]
mod support;
#[cfg(test)]
#[path = "../fuzz/targets/list.rs"]
pub mod targets;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod twice;
#[cfg(test)]
mod vllm;
#[cfg(test)]
mod walk;
