//! The command line: its commands, and the code that runs each of them.

mod dashes;
mod help;
mod tips;

use std::{panic::resume_unwind, path::PathBuf, process::ExitCode, thread, time::Duration};

use clap::{Args, FromArgMatches, Parser, Subcommand};
use narthex_client::cli::{
    AddServerArgs, AgentsCommand, AuditCommand, BackupArgs, CallArgs, CatalogCommand,
    ChannelsCommand, CheckCommand, ClientsCommand, ConnectArgs, ConnectionsCommand, DaemonCommand,
    EnvBindingsCommand, ExportArgs, GrantsCommand, ImportArgs, InitArgs, LimitsCommand, McpCommand,
    McpDaemonCommand, MembersCommand, MountArgs, OpenArgs, PolicyCommand, ProfilesCommand,
    RestoreArgs, RunCommand, SearchArgs, SecretsCommand, ServersCommand, ServiceCommand,
    SessionsCommand, SetupArgs, SharesCommand, StraceArgs, TokensCommand, ToolsArgs, TopArgs,
    TrustArgs, UninstallArgs, UpArgs, UsageArgs, UsersCommand, VersionArgs, VfsCommand,
    WebhooksCommand, WorkspacesCommand,
};
use narthex_client::{commands as client, environment::is_utf8_locale};
use narthex_model::{CatalogKind, ErrorKind, command};
use narthex_telemetry::TelemetryError;
use tokio::runtime::{Builder, Runtime};

use crate::{
    Failure, commands,
    config::{self, Flags, Settings},
    core_dumps,
    output::{self, Format},
    successor::Successor,
};

/// The time for which work that is left after a command may hold up the end of the program.
const RUNTIME_END: Duration = Duration::from_millis(500);
/// The stack of the thread that reads the command line: that of a first thread.
const READER_STACK: usize = 8 << 20;

/// The control plane and gateway between AI agents and their MCP servers.
#[derive(Debug, Parser)]
#[command(name = "narthex", version, max_term_width = 100)]
#[command(after_help = "Settings also come from NARTHEX_… variables and the settings file; see \
    docs/reference/configuration.md.\nExit codes: 0 done, 1 failed, 2 wrong usage.")]
pub(crate) struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Common {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Print only the values that a script needs
    #[arg(long, global = true, conflicts_with = "json")]
    quiet: bool,
    /// Print ASCII characters only
    #[arg(long, global = true)]
    ascii: bool,
    /// The folder of tokens, state and audit records [default: ~/.local/share/narthex]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address of the daemon [default: the address in the data directory]
    #[arg(long, global = true, value_name = "URL")]
    daemon_url: Option<String>,
    /// The file with the token to send [default: the operator's token; for commands that use a run,
    /// the client's token]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file of certificates, in PEM, to trust besides the machine's for --daemon-url
    #[arg(long, global = true, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The SHA-256 fingerprint of the only certificate that --daemon-url may have
    #[arg(long, global = true, value_name = "SHA256")]
    daemon_fingerprint: Option<String>,
    /// The settings file [default: ~/.config/narthex/narthex.toml]
    #[arg(long, global = true, value_name = "FILE")]
    settings: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Move the servers of your MCP clients to narthex, and connect the clients; or undo that
    Setup(SetupArgs),
    /// Undo the set-up, remove the service, and delete the data if you want it
    Uninstall(UninstallArgs),
    /// Write a first configuration; existing files stay unchanged
    Init(InitArgs),
    /// Approve the mcp.json of a folder, so that `narthex up` starts its servers
    Trust(TrustArgs),
    /// Start the daemon: one endpoint for all servers
    Up(UpArgs),
    /// Search a registry for servers
    Search(SearchArgs),
    /// Try a server of a registry, and add it if it works; `mcp add` takes a command or a URL
    Add(AddServerArgs),
    /// List the tools of all servers or of one, or show one tool with its arguments
    Tools(ToolsArgs),
    /// Call one tool
    Call(CallArgs),
    /// Connect a client that starts programs to the daemon, over standard input and output
    Connect(ConnectArgs),
    /// Mount the servers of a run as files in a folder
    Mount(MountArgs),
    /// Show the daemon, its servers and the active runs
    Status,
    /// Open the console in your browser, signed in
    Open(OpenArgs),
    /// Create, list, claim and end runs
    #[command(subcommand)]
    Runs(RunCommand),
    /// List, message, suspend, resume and end the sessions of agents
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Show the operations of a run as they happen
    Strace(StraceArgs),
    /// Show the load of the active runs, every second
    Top(TopArgs),
    /// Show today's use of a workspace and its limits
    Usage(UsageArgs),
    /// List, export and verify the record of all actions
    #[command(subcommand)]
    Audit(AuditCommand),
    /// List, save and comment the files that agents share
    #[command(subcommand)]
    Shares(SharesCommand),
    /// List, make and end your connections to servers that people sign in to
    #[command(subcommand)]
    Connections(ConnectionsCommand),
    /// List, test and change the servers of this daemon's configuration files
    #[command(subcommand)]
    Mcp(McpCommand),
    /// List and show profiles: named sets of servers and tools for clients
    #[command(subcommand)]
    Profiles(ProfilesCommand),
    /// List, apply, review and delete the servers of a workspace's catalog
    #[command(subcommand)]
    Servers(ServersCommand),
    /// List, apply and delete capabilities: bundles of servers that agents include
    #[command(subcommand)]
    Capabilities(CatalogCommand),
    /// List, apply and delete agents, and attach servers to them
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Set, list and clear secrets, and change the master key that seals them
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// List, create and revoke grants, and answer the requests of runs
    #[command(subcommand)]
    Grants(GrantsCommand),
    /// Show, set and check the rules that deny calls of a workspace, or require approval
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show and set the traffic limits of a workspace
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Check for faults that keep servers from working
    #[command(subcommand)]
    Check(CheckCommand),
    /// Print the servers, capabilities and agents of a workspace as one document
    Export(ExportArgs),
    /// Store the objects of an exported document: all of them, or none
    Import(ImportArgs),
    /// Stop or restart the daemon, or show whether one runs
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Install the daemon as a service that starts by itself, and set its port
    #[command(subcommand)]
    Service(ServiceCommand),
    /// List, create, change and delete workspaces
    #[command(subcommand)]
    Workspaces(WorkspacesCommand),
    /// Create and disable human users, and make their sign-in links
    #[command(subcommand)]
    Users(UsersCommand),
    /// List and set the roles of a workspace's members
    #[command(subcommand)]
    Members(MembersCommand),
    /// List, create and revoke the tokens of a workspace's services
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// List, register and revoke the MCP clients of a workspace
    #[command(subcommand)]
    Clients(ClientsCommand),
    /// List and set the channels that agents post messages to
    #[command(subcommand)]
    Channels(ChannelsCommand),
    /// List and set the webhooks that receive requests and decisions of humans
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// List and set the secrets in the environment of agents
    #[command(subcommand)]
    EnvBindings(EnvBindingsCommand),
    /// Copy the data and settings of this daemon into a file; it may be running
    Backup(BackupArgs),
    /// Make the data directory from a backup, on this or another machine
    Restore(RestoreArgs),
    /// Show the version of this program, and on demand the newest one
    Version(VersionArgs),
    /// Show the principal that the token belongs to
    Whoami,
    /// List, read and write the files of a run without a mounted folder
    #[command(subcommand)]
    Vfs(VfsCommand),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Write the manual pages of all commands into a folder, for packages
    #[command(hide = true)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  source <(narthex completions bash)")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder, which is created if it is missing
    pub(crate) folder: PathBuf,
}

/// The settings and output options of a command that needs a part of the server.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    /// True if the command goes on without the settings file, which cannot be used.
    pub(crate) is_without_file: bool,
    pub(crate) format: Format,
    /// True if only ASCII may be printed.
    pub(crate) is_ascii: bool,
    /// The program that takes the place of this one at its end.
    pub(crate) successor: Successor,
}

impl Context {
    /// The part that commands read which only speak to a daemon.
    pub(crate) fn client(&self) -> narthex_client::Context {
        let daemon = self.settings.daemon.clone();
        narthex_client::Context { daemon, format: self.format, is_ascii: self.is_ascii }
    }
}

/// Runs the command of the command line.
#[must_use]
pub fn main() -> ExitCode {
    if arguments().nth(1).is_none() {
        return told(&help::beginning());
    }
    if arguments().skip(1).eq(help::ALL) {
        return told(&help::all());
    }
    let (cli, workspace) = match read_aside() {
        Ok(read) => read,
        Err(error) => return refuse(&error),
    };
    let format = match (cli.common.json, cli.common.quiet) {
        (true, _) => Format::Json,
        (false, true) => Format::Quiet,
        (false, false) => Format::Text,
    };
    match run(cli, workspace, format) {
        Ok(code) => code,
        Err(failure) => {
            output::failure(&failure, format);
            failure.exit_code()
        }
    }
}

/// Prints a text about the program itself.
fn told(text: &str) -> ExitCode {
    match output::line(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit_code(),
    }
}

/// Reads the command line on a thread of its own. The description of all commands takes megabytes,
/// which a daemon would keep for its whole life: they end with the thread.
fn read_aside() -> Result<(Cli, Option<String>), clap::Error> {
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("arguments".into()).stack_size(READER_STACK);
        match reader.spawn_scoped(scope, || read(arguments())) {
            Ok(reader) => reader.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_no_thread) => read(arguments()),
        }
    })
}

/// The command line, and the workspace that it names.
fn read(
    arguments: impl IntoIterator<Item = std::ffi::OsString>,
) -> Result<(Cli, Option<String>), clap::Error> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let read = dashes::read(&help::command(), &arguments);
    let dashes::Read { matches, doubtful } =
        read.map_err(|refusal| tips::with_tip(refusal, &arguments))?;
    let mut inner = &matches;
    while let Some((_, next)) = inner.subcommand() {
        inner = next;
    }
    let workspace = inner.try_get_one::<String>("workspace").ok().flatten().cloned();
    let mut cli =
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut help::command()))?;
    if let Command::Mcp(McpCommand::Daemon(McpDaemonCommand::Add(args))) = &mut cli.command {
        args.doubtful = doubtful;
    }
    Ok((cli, workspace))
}

/// The command line, without the arguments for a second process of this program.
fn arguments() -> impl Iterator<Item = std::ffi::OsString> {
    #[cfg(target_os = "linux")]
    return narthex_fuse::mounter::background::arguments();
    #[cfg(not(target_os = "linux"))]
    return std::env::args_os();
}

/// Shows the help, the version, or the fault of the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    // A faulty command line may still name the format of its answer.
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        let failure = Failure::usage(text.trim().trim_start_matches("error: "));
        output::failure(&failure, Format::Json);
        return failure.exit_code();
    }
    let is_shown = error.print().is_ok();
    match (error.use_stderr(), is_shown) {
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
        (true, _) => ExitCode::from(2),
    }
}

fn run(cli: Cli, workspace: Option<String>, format: Format) -> Result<ExitCode, Failure> {
    // Before memory has anything that no other process may read.
    core_dumps::forbid()?;
    let flags = flags(&cli);
    let (mut settings, fault) = match config::load(&flags) {
        Ok(settings) => (settings, None),
        // A broken settings file keeps no user from leaving.
        Err(failure) if matches!(cli.command, Command::Uninstall(_)) => {
            (config::load_without_file(&flags)?, Some(failure.message))
        }
        Err(failure) => return Err(failure),
    };
    if let Command::Up(_)
    | Command::Trust(_)
    | Command::Service(_)
    | Command::Setup(_)
    | Command::Uninstall(_)
    | Command::Mcp(McpCommand::Import(_)) = &cli.command
    {
        // These work on files of this machine, so the commands that they print do as well.
        settings.daemon.daemon_url = None;
    }
    command::choose(settings.daemon.chosen(flags.settings.as_deref(), workspace));
    if let Some(warning) = config::unknown_variables() {
        output::notice(&warning);
    }
    if let Some(fault) = &fault {
        output::notice(&without_file(fault, &settings));
    }
    let runtime = runtime(&cli.command)?;
    let telemetry = narthex_telemetry::start(settings.telemetry(), runtime.handle())
        .map_err(|error| untold(&error, &settings))?;
    settings.tracer = telemetry.tracer();
    let is_ascii = cli.common.ascii || !is_utf8_locale();
    let successor = Successor::default();
    let is_without_file = fault.is_some();
    let context =
        Context { settings, is_without_file, format, is_ascii, successor: successor.clone() };
    let done = runtime.block_on(dispatch(cli.command, context));
    telemetry.end();
    // A blocked read of standard input must not hold up the end.
    runtime.shutdown_timeout(RUNTIME_END);
    if done.is_ok() {
        successor.begin()?;
    }
    done
}

/// The warning of a command that goes on without the settings file.
fn without_file(fault: &str, settings: &Settings) -> String {
    let data = settings.daemon.data.display();
    format!(
        "warning: the settings file is left out, since it cannot be used: {fault}; the data \
         directory is {data}, and --data names another"
    )
}

/// The failure of logs or traces, with the setting that is wrong.
fn untold(error: &TelemetryError, settings: &Settings) -> Failure {
    let source = match error {
        TelemetryError::Filter { .. } => settings.source("log.level"),
        TelemetryError::Endpoint { .. } => settings.source("telemetry.otlp_endpoint"),
        TelemetryError::Twice(_) => None,
    };
    let text = source.map_or_else(|| error.to_string(), |source| format!("{source}: {error}"));
    match error.kind() {
        ErrorKind::Invalid => Failure::usage(text),
        kind => Failure::new(kind, text),
    }
}

async fn dispatch(command: Command, context: Context) -> Result<ExitCode, Failure> {
    let (plain, registry) = (context.client(), context.settings.registry());
    match command {
        Command::Up(args) => Box::pin(commands::up::run(args, context)).await,
        Command::Setup(args) => Box::pin(commands::setup::run(args, context)).await,
        Command::Uninstall(args) => Box::pin(commands::uninstall::run(args, context)).await,
        Command::Search(args) => Box::pin(client::search::run(args, plain, registry)).await,
        Command::Add(args) => Box::pin(client::add::run(args, plain, registry)).await,
        Command::Call(args) => Box::pin(commands::call::run(args, context)).await,
        Command::Tools(args) => Box::pin(commands::tools::run(args, context)).await,
        Command::Mount(args) => Box::pin(commands::mount::run(args, plain)).await,
        Command::Vfs(command) => Box::pin(commands::vfs::run(command, plain)).await,
        Command::Status => Box::pin(client::status::run(plain)).await,
        Command::Open(args) => Box::pin(client::open::run(args, plain)).await,
        Command::Mcp(command) => mcp(command, context).await,
        Command::Profiles(command) => Box::pin(client::profiles::run(command, plain)).await,
        Command::Runs(command) => Box::pin(client::runs::run(command, plain)).await,
        Command::Sessions(command) => Box::pin(client::sessions::run(command, plain)).await,
        Command::Strace(args) => Box::pin(commands::strace::run(&args, &plain)).await,
        Command::Top(args) => Box::pin(commands::top::run(&args, &plain)).await,
        Command::Servers(ServersCommand::Catalog(command)) => {
            catalog(CatalogKind::Server, command, plain).await
        }
        Command::Servers(command) => Box::pin(client::definitions::run(command, plain)).await,
        Command::Capabilities(command) => catalog(CatalogKind::Capability, command, plain).await,
        Command::Agents(AgentsCommand::Catalog(command)) => {
            catalog(CatalogKind::Agent, command, plain).await
        }
        Command::Agents(command) => Box::pin(client::attachments::run(command, plain)).await,
        Command::Export(args) => Box::pin(client::transfer::export(&args, &plain)).await,
        Command::Import(args) => Box::pin(client::transfer::import(&args, &plain)).await,
        Command::Secrets(command) => Box::pin(client::secrets::run(command, plain)).await,
        Command::EnvBindings(command) => Box::pin(client::env_bindings::run(command, plain)).await,
        Command::Grants(command) => Box::pin(client::grants::run(command, plain)).await,
        Command::Policy(command) => Box::pin(commands::policy::run(command, plain)).await,
        Command::Audit(command) => Box::pin(commands::audit::run(command, plain)).await,
        Command::Users(command) => Box::pin(client::users::run(command, plain)).await,
        Command::Workspaces(command) => Box::pin(client::workspaces::run(command, plain)).await,
        Command::Members(command) => Box::pin(client::members::run(command, plain)).await,
        Command::Channels(command) => Box::pin(client::channels::run(command, plain)).await,
        Command::Webhooks(command) => Box::pin(client::channels::webhooks(command, plain)).await,
        Command::Connections(command) => Box::pin(client::connections::run(command, plain)).await,
        Command::Shares(command) => Box::pin(client::shares::run(command, plain)).await,
        Command::Clients(command) => Box::pin(client::clients::run(command, plain)).await,
        Command::Tokens(command) => Box::pin(client::tokens::run(command, plain)).await,
        Command::Version(args) => {
            let releases = context.settings.releases();
            Box::pin(client::version::run(args, plain, releases)).await
        }
        Command::Whoami => Box::pin(client::users::whoami(plain)).await,
        Command::Usage(args) => Box::pin(client::traffic::usage(args, plain)).await,
        Command::Limits(command) => Box::pin(client::traffic::limits(command, plain)).await,
        Command::Backup(args) => Box::pin(commands::backup::run(args, context)).await,
        Command::Restore(args) => Box::pin(commands::restore::run(args, context)).await,
        Command::Check(CheckCommand::Mcp) => Box::pin(commands::check::run(context)).await,
        Command::Init(args) => commands::init::run(&args, &context),
        Command::Daemon(command) => Box::pin(client::daemon::run(command, plain)).await,
        Command::Service(command) => {
            let door = context.settings.door();
            let readdress = &commands::service_port::readdress_all;
            Box::pin(client::service::run(command, &plain, door, readdress)).await
        }
        Command::Connect(args) => Ok(Box::pin(client::connect::run(&args, &plain)).await),
        Command::Trust(args) => Box::pin(commands::trust::run(args, context)).await,
        Command::Completions(args) => commands::completions::run(&args, &context),
        Command::Man(args) => commands::completions::write_manual(help::command(), &args, &context),
    }
}

async fn catalog(
    kind: CatalogKind,
    command: CatalogCommand,
    context: narthex_client::Context,
) -> Result<ExitCode, Failure> {
    Box::pin(client::catalog::run(kind, command, context)).await
}

async fn mcp(command: McpCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        McpCommand::Import(args) => Box::pin(commands::import::run(args, context)).await,
        McpCommand::Daemon(command) => {
            let configured = async || commands::configured(&context.settings).await;
            Box::pin(client::mcp::run(command, context.client(), configured)).await
        }
    }
}

fn flags(cli: &Cli) -> Flags {
    let mut flags = Flags {
        settings: cli.common.settings.clone(),
        data: cli.common.data.clone(),
        daemon_url: cli.common.daemon_url.clone(),
        token_file: cli.common.token_file.clone(),
        ca_file: cli.common.ca_file.clone(),
        daemon_fingerprint: cli.common.daemon_fingerprint.clone(),
        ..Flags::default()
    };
    // Elsewhere `--config` means to work in process, which is no setting.
    if let Command::Up(args) = &cli.command {
        flags.config.clone_from(&args.config);
        flags.servers.clone_from(&args.servers);
        flags.listen.clone_from(&args.listen);
        flags.tools.clone_from(&args.tools);
        flags.tls_cert.clone_from(&args.tls_cert);
        flags.tls_key.clone_from(&args.tls_key);
        flags.is_self_signed = args.tls_self_signed;
    }
    flags
}

fn runtime(command: &Command) -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    if matches!(command, Command::Mount(_)) {
        builder.worker_threads(commands::mount::threads());
    }
    builder.enable_all().build().map_err(|error| {
        Failure::new(ErrorKind::Unavailable, format!("cannot start threads: {error}"))
    })
}

#[cfg(test)]
mod tests;
