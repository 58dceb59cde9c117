//! The part of the command line for the daemon as a service of the system.

use std::{num::NonZeroU16, path::PathBuf};

use clap::{Args, Subcommand};

use super::RemoteArgs;

/// Commands for the daemon as a service of systemd or launchd.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Install the daemon as a service that starts with your session, and start it
    Install(ServiceInstallArgs),
    /// Show whether the service is installed and runs; exit code 1 unless it runs
    #[command(after_help = "Example:\n  narthex service status --quiet && echo running")]
    Status(ServiceOfArgs),
    /// Show the last lines of the daemon's log, also of a daemon in the background
    Logs(ServiceLogsArgs),
    /// Show the port of the daemon, or change it and restart the service
    Port(ServicePortArgs),
    /// Stop the service and remove it; data, tokens and settings stay
    Uninstall(ServiceUninstallArgs),
}

/// The manager that a command is about.
#[derive(Debug, Default, Args)]
pub struct ServiceOfArgs {
    /// The service of the whole machine, with a user of its own; needs root and systemd
    #[arg(long)]
    pub system: bool,
}

#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  narthex service install --dry-run\n  \
    narthex service install\n  \
    narthex service install --config ~/project/mcp.json\n  \
    sudo narthex service install --system --config /etc/narthex/mcp.json")]
pub struct ServiceInstallArgs {
    #[command(flatten)]
    pub of: ServiceOfArgs,
    /// A file of servers besides your settings; naming it approves it, with its later changes
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The port to listen at [default: the stored one, or the first free one from 7717]
    #[arg(long, value_name = "PORT")]
    pub port: Option<NonZeroU16>,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Make all checks, print the files and commands, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex service logs\n  narthex service logs --follow")]
pub struct ServiceLogsArgs {
    #[command(flatten)]
    pub of: ServiceOfArgs,
    /// Largest number of lines
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub lines: u32,
    /// Print new lines as the daemon writes them, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex service port\n  narthex service port 7720")]
pub struct ServicePortArgs {
    #[command(flatten)]
    pub of: ServiceOfArgs,
    /// The new port; without one, the present port is shown
    pub port: Option<NonZeroU16>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex service uninstall --dry-run\n  \
    narthex service uninstall")]
pub struct ServiceUninstallArgs {
    #[command(flatten)]
    pub of: ServiceOfArgs,
    /// Print the files and commands, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
