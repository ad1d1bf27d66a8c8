//! The root of another crate, `docket-fuzz` (tests/fuzz): the modules that read what is sent, without
//! those that need the engine.
//!
//! docket itself does not have this file. It stands here because a crate's modules are looked for beside
//! its root; names are those of `lib.rs`, so that every `crate::` path means the same in both.

// The targets say `docket::`, and are checked by the tests of docket too.
extern crate self as docket;

pub mod config {
    //! What of the configuration the key file needs.
    #![expect(dead_code, reason = "parts that no target needs")]
    pub mod keys;
    pub mod quantity;
}
pub mod dialect;
pub mod error;
pub mod extract;
pub mod files {
    //! What prompts need of a model's files.
    pub mod facts;
    pub use facts::PromptFacts;
}
pub mod json;
pub mod prompt {
    //! The chat template, and JSON as text.
    pub mod error;
    pub mod state;
    pub mod template;
    pub use error::PromptError;
}
pub mod question;
pub mod readout {
    //! What stages need of the readout.
    pub mod confidence;
}
pub mod service {
    //! What dialects read and write.
    pub mod prewarm;
    pub mod served;
    pub use prewarm::{Prefixes, Prewarm, Prewarmed, States, Warmed};
    pub use served::{Decided, Health, ModelEntry};
}
#[path = "../tests/fuzz/targets/list.rs"]
pub mod targets;
pub mod tenants;
pub mod watched;
