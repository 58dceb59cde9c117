//! The part of the command line that speaks HTTP to a daemon: its commands, the client of the
//! daemon, and the output.
//!
//! Links no part of the server, so that an installation of clients alone stays small.

pub mod arguments;
pub mod cli;
pub mod commands;
pub mod daemon_client;
pub mod data_dir;
pub mod dialect;
pub mod documents;
pub mod door;
pub mod environment;
pub mod listeners;
pub mod output;
pub mod public_registry;
pub mod rows;
pub mod service;
pub mod settings_files;
pub mod starting;
pub mod stop;
pub mod table;
pub mod terminal;

mod daemon_options;
mod failure;
mod web;

pub use daemon_options::{Context, DaemonOptions};
pub use failure::{Failure, FailureKind};
