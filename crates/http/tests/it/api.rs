//! The operators' API: rows, changes, verbs, tests, and what happens to servers as it happens.

mod attachments;
mod audit;
mod catalog;
mod changes;
mod reading;
mod secrets;
mod transfer;
mod world;
