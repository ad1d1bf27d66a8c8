//! What was run for each tenant, told to whoever keeps accounts.

use std::collections::BTreeMap;

use crate::links::Shared;
use crate::read::TenantId;

/// What was done for a tenant. Every token that the engine ran in a step that succeeded is in one
/// of these, once, whoever waited for it: decisions whose caller left, prewarms and registrations
/// too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Reads that were run.
    pub reads: u64,
    /// Tokens that were run: of a row for who asked first, of a state in equal parts for the
    /// tenants who waited for it when its step began.
    pub computed_tokens: u64,
    /// Tokens of answered reads that were found, or computed for other reads.
    pub cached_tokens: u64,
}

/// Who keeps accounts.
pub trait Account: Send + Sync {
    /// Work was done for a tenant, `PARENT/SUB` for a sub-tenant. Called by the scheduler between
    /// steps, and before the reads are answered, so it must not wait.
    fn worked(&self, tenant: &TenantId, work: Work);
}

impl Shared {
    /// Tells who keeps accounts what was done for each tenant.
    pub(crate) fn account(&self, work: BTreeMap<TenantId, Work>) {
        let Some(accounts) = self.accounts.get() else { return };
        for (tenant, work) in work {
            accounts.worked(&tenant, work);
        }
    }
}
