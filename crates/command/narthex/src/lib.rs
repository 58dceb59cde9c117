//! The program as a library: the assembly [`App`] and the commands around it.
//!
//! The daemon, a call in process and the tests use one and the same [`App`].

mod app;
mod arguments;
mod cli;
mod commands;
mod core_dumps;
mod output;
mod peer;
mod rows;
mod run_sockets;
mod secrets;
mod table;

use narthex_daemon_client as daemon_client;
use narthex_data_dir::{self as data_dir, trust};
use narthex_settings as config;

pub use app::{App, AppOptions, Doors, Servers};
pub use cli::main;
pub use narthex_failure::{Failure, FailureKind};
pub use narthex_settings::ConnectionOptions;
