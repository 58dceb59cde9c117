//! Identifiers, names, domain types and error kinds that every other crate may say.
