//! The command line: commands, their arguments, and their help. `commands` and crate `narthex`
//! carry them out.

mod access;
mod audit;
mod catalog;
mod clients;
mod connections;
mod env_bindings;
mod files;
mod find;
mod grants;
mod local;
mod operate;
mod outbound;
mod policy;
mod profiles;
mod runs;
mod secrets;
mod service;
mod sessions;
mod setup;
mod shares;
mod traffic;
mod uninstall;
mod users;
mod values;
mod version;
mod watch;

pub use access::{
    ChangeWorkspaceArgs, DeleteWorkspaceArgs, MembersCommand, NewTokenArgs, Switch, TokensCommand,
    WorkspacesCommand,
};
pub use audit::{AuditCommand, AuditListArgs, AuditPlaceArgs, AuditVerifyArgs};
pub use catalog::{
    AgentsCommand, ApplyArgs, AttachArgs, CatalogCommand, DecideArgs, DeleteArgs, ExportArgs,
    GetArgs, ImportArgs, ServersCommand, SourceArgs,
};
pub use clients::{ClientsCommand, RegisterClientArgs};
pub use connections::{ConnectAccountArgs, ConnectionsCommand};
pub use env_bindings::{EnvBindingsCommand, EnvScopeArgs, SetEnvBindingArgs};
pub use files::{MountArgs, VfsCommand};
pub use find::{AddServerArgs, PublicRegistryArgs, SearchArgs};
pub use grants::{CreateGrantArgs, GrantArgs, GrantsCommand};
pub use local::{CallArgs, ConnectArgs, RemoteArgs, ToolsArgs, TrustArgs, UpArgs};
pub use operate::{
    AddArgs, AuthorizeArgs, BackupArgs, CheckCommand, DaemonCommand, Doubtful, ImportServersArgs,
    InitArgs, LogsArgs, McpCommand, McpDaemonCommand, ReauthorizeArgs, RestartArgs, RestoreArgs,
    StopArgs, TestArgs, is_address, is_program,
};
pub use outbound::{ChannelsCommand, SetChannelArgs, SetWebhookArgs, WebhooksCommand};
pub use policy::{CheckPolicyArgs, PolicyCommand, SetPolicyArgs};
pub use profiles::ProfilesCommand;
pub use runs::{ClaimArgs, CreateArgs, EndArgs, RunCommand, SessionsCommand};
pub use secrets::{SecretsCommand, SetArgs, WorkspaceArgs};
pub use service::{
    ServiceCommand, ServiceInstallArgs, ServiceLogsArgs, ServiceOfArgs, ServicePortArgs,
    ServiceUninstallArgs,
};
pub use sessions::{SessionEventsArgs, SessionMessageArgs, SessionResumeArgs};
pub use setup::SetupArgs;
pub use shares::{CommentShareArgs, GetShareArgs, SharesCommand};
pub use traffic::{LimitsCommand, SetLimitsArgs, UsageArgs};
pub use uninstall::UninstallArgs;
pub use users::{CreateUserArgs, OpenArgs, PasskeysCommand, UsersCommand};
pub use values::{duration, moment};
pub use version::VersionArgs;
pub use watch::{StraceArgs, TopArgs};
