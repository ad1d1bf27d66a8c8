//! A gateway over real sockets, in front of backends that do as they are told: which of them is asked,
//! what is sent once more, and what passes through and how.

mod backend;
mod choosing;
mod front;
mod passing;
mod retrying;
