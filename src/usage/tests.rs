//! Usage as a whole: many threads against a plain model, stores that fail, and a process that is
//! killed.

mod failing;
mod killed;
mod model;
