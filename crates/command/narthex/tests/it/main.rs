//! The built program against the fixture server: its output, its exit codes and the files it
//! leaves.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod access;
mod agent_runs;
mod all_workspaces;
mod app;
mod arrivals;
mod attacks;
mod audit;
mod backup;
mod bundles;
mod call;
mod canaries;
mod catalog;
mod check;
mod client_pages;
mod connect;
mod connections;
mod daemon;
mod data_folder;
mod definitions;
mod dialects;
mod documents;
mod executors;
mod exhaustion;
mod fidelity;
mod files;
mod find;
mod first_hour;
mod grants;
mod help;
mod identity;
mod import;
mod init;
mod keychain;
mod killed;
mod killed_renewals;
mod limits;
mod local_secrets;
mod matrix;
mod mcp;
mod one_url;
mod open;
mod operators;
mod orchestrator;
mod outbound;
mod outcomes;
mod policy;
mod profiles;
mod recorder;
mod reload;
mod reload_load;
mod remedies;
mod restart;
mod runs;
mod secrets;
mod server_sign_ins;
mod service;
mod session_events;
mod sessions;
mod settings;
mod setup;
mod shares;
mod shop;
mod store_url;
mod support;
mod template;
mod tls;
mod trace;
mod trust;
mod up;
mod upgrade;
mod version;
mod watching;
mod world;
