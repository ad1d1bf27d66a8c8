//! `docket openapi`: the HTTP interface as a document.

use clap::Args;

use super::named::one_of;
use crate::dialect::Dialect;
use crate::openapi::{self, Served};

/// Of which server.
#[derive(Debug, Clone, Args)]
pub struct OpenapiArgs {
    /// Wire format of routes that name none: systemone, decisio, self, vllm, gmlx, openai
    #[arg(long, env = "DOCKET_DIALECT", value_name = "NAME", default_value = "systemone")]
    #[arg(value_parser = one_of::<Dialect>(&Dialect::ALL.map(Dialect::name)))]
    #[arg(hide_possible_values = true)]
    pub dialect: Dialect,
}

impl OpenapiArgs {
    /// The document of a server with default limits and without keys.
    pub fn document(&self) -> String {
        openapi::document(&Served { dialect: self.dialect, ..Served::default() })
    }
}
