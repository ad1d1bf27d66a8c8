//! Laws of the ledger.
