//! The part of the command line for workspaces, members and tokens.

use clap::{Args, Subcommand};
use narthex_model::{Role, did_you_mean};

use super::WorkspaceArgs;

/// Commands for workspaces.
#[derive(Debug, Subcommand)]
pub enum WorkspacesCommand {
    /// List the workspaces that you may see
    List {
        /// List all workspaces, with their members, servers, active runs and calls of today
        #[arg(long)]
        counts: bool,
    },
    /// Create a workspace
    #[command(after_help = "Example:\n  narthex workspaces create team --name \"The team\"")]
    Create {
        /// The id: 1 to 64 characters of a-z, 0-9, _ and -
        id: String,
        /// The name that people read [default: the id]
        #[arg(long)]
        name: Option<String>,
    },
    /// Change the name or the settings of a workspace
    Change(ChangeWorkspaceArgs),
    /// Delete an empty workspace
    Delete(DeleteWorkspaceArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex workspaces change team --audit-contents on\n  \
    narthex workspaces change team --oauth-on-orchestrators on_attended\n  \
    narthex workspaces change team --name \"The whole team\"")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub struct ChangeWorkspaceArgs {
    /// The workspace's id
    pub id: String,
    /// The name that people read
    #[arg(long, group = "change")]
    pub name: Option<String>,
    /// Record the arguments and answers of calls in the audit; known secrets are removed
    #[arg(long, value_name = "SWITCH", group = "change")]
    pub audit_contents: Option<Switch>,
    /// Servers with sign-in for agents other than workers: never, in runs that a person drives, or
    /// always
    #[arg(long, value_name = "WHEN", group = "change")]
    pub oauth_on_orchestrators: Option<OauthSwitch>,
    /// Days for which events of an ended session are stored; 0 is forever
    #[arg(long, value_name = "DAYS", group = "change", value_parser = super::values::count::<u32>)]
    pub events_kept_days: Option<u32>,
    /// Let runs ask humans for grants
    #[arg(long, value_name = "SWITCH", group = "change")]
    pub runtime_requests: Option<Switch>,
    /// A model that runs may request, with its other names; repeat the flag, the newest first
    #[arg(long, value_name = "ID[=NAME,…]", group = "change")]
    pub model: Vec<String>,
    /// Let runs request any model
    #[arg(long, group = "change", conflicts_with = "model")]
    pub any_model: bool,
}

/// Cases in which agents that are no workers may use servers that each person signs in to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum OauthSwitch {
    Off,
    OnAttended,
    On,
}

impl OauthSwitch {
    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OnAttended => "on_attended",
            Self::On => "on",
        }
    }
}

/// State of a switch: on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
pub struct DeleteWorkspaceArgs {
    /// The workspace's id
    pub id: String,
    /// End the workspace's runs, and delete all of its objects
    #[arg(long)]
    pub force: bool,
}

/// Commands for the members of a workspace.
#[derive(Debug, Subcommand)]
pub enum MembersCommand {
    /// List the members of a workspace with their roles
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Replace the roles of a member
    #[command(after_help = "Examples:\n  narthex members set ada admin\n  \
        narthex members set team/ci author,runner --workspace team")]
    Set {
        /// The member's name or id; for a service WORKSPACE/NAME
        member: String,
        /// The roles, separated by commas: admin, author, runner, auditor
        #[arg(value_parser = role, value_delimiter = ',', required_unless_present = "role")]
        roles: Vec<Role>,
        /// The same as the roles after the name
        #[arg(
            long,
            value_parser = role,
            value_delimiter = ',',
            value_name = "ROLES",
            conflicts_with = "roles",
            hide = true
        )]
        role: Vec<Role>,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Remove a member's roles; a service's tokens are revoked too
    Remove {
        /// The member's name or id
        member: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

/// Commands for the tokens of services.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// List all tokens, revoked ones too; the secret part is never shown
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Create a token for a service; the token is shown once
    Create(NewTokenArgs),
    /// Revoke a token at once
    Revoke {
        /// The token's id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex tokens create ci --role runner --label build\n  \
    narthex tokens create ci --expires-in 30 --quiet > ci.token")]
pub struct NewTokenArgs {
    /// The service; created if it does not exist
    pub service: String,
    /// A role of a new service; repeat the flag for more roles
    #[arg(long = "role", value_parser = role)]
    pub roles: Vec<Role>,
    /// The purpose of the token, for people
    #[arg(long)]
    pub label: Option<String>,
    /// Number of days until the token expires [default: 90]
    #[arg(long, value_name = "DAYS", value_parser = super::values::whole::<u64, 1, 3650>)]
    pub expires_in: Option<u64>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    let all = Role::ALL.map(Role::as_str);
    Role::parse(text).ok_or_else(|| {
        let hint =
            did_you_mean(text, all).unwrap_or_else(|| format!("the roles are {}", all.join(", ")));
        format!("there is no such role; {hint}")
    })
}
