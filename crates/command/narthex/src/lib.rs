//! The program as a library: the assembly [`App`] and the commands around it.
//!
//! The daemon, a call in process and the tests all use the same [`App`].

mod app;
mod archive;
mod cli;
mod commands;
mod config;
mod core_dumps;
mod elsewhere;
mod peer;
mod public_servers;
mod run_sockets;
mod secrets;
mod server_rows;
mod stored;
mod successor;
mod trust;

use narthex_client::{arguments, daemon_client, data_dir, output, rows, stop, table};

pub use app::{App, AppOptions, Doors, Servers};
pub use cli::main;
pub use config::ConnectionOptions;
pub use narthex_client::{Failure, FailureKind};
