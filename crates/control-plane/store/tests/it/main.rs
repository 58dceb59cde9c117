//! The store in separate files and databases: objects, refusals, several processes, earlier
//! versions.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod audit;
mod backup;
mod catalog;
mod children;
mod cuts;
mod definitions;
mod door;
mod env_bindings;
mod events;
mod grants;
mod kept_answers;
mod logins;
mod mcp_clients;
mod oauth;
mod objects;
mod outbound;
mod postgres;
mod principals;
mod processes;
mod read_only;
mod refusals;
mod resting;
mod rules;
mod runs;
mod secrets;
mod shares;
mod support;
mod suspended;
mod traffic;
mod turns;
mod versions;
