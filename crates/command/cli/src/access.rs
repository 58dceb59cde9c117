//! The part of the command line for workspaces, members and tokens.

use clap::{Args, Subcommand};
use narthex_model::{Role, did_you_mean};

use crate::WorkspaceArgs;

/// Commands for workspaces.
#[derive(Debug, Subcommand)]
pub enum WorkspacesCommand {
    /// List those that you may know of
    List,
    /// Make one
    #[command(after_help = "Example:\n  narthex workspaces create team --name \"The team\"")]
    Create {
        /// Its id: 1 to 64 of a-z, 0-9, _ and -
        id: String,
        /// What people call it [default: the id]
        #[arg(long)]
        name: Option<String>,
    },
    /// Change its name or its settings
    Change(ChangeWorkspaceArgs),
    /// Delete one in which nothing lives
    Delete(DeleteWorkspaceArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex workspaces change team --audit-contents on\n  \
    narthex workspaces change team --oauth-on-orchestrators on_attended\n  \
    narthex workspaces change team --name \"The whole team\"")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub struct ChangeWorkspaceArgs {
    /// Its id
    pub id: String,
    /// What people call it
    #[arg(long, group = "change")]
    pub name: Option<String>,
    /// Record arguments and answers of calls from now on, without known secrets, or no more;
    /// whoever may read the audit reads them
    #[arg(long, value_name = "SWITCH", group = "change")]
    pub audit_contents: Option<Switch>,
    /// Let agents that are no workers have servers that each person signs in to: never, in runs
    /// that a person drives, or always
    #[arg(long, value_name = "WHEN", group = "change")]
    pub oauth_on_orchestrators: Option<OauthSwitch>,
    /// For how many days events of a session are kept after its end; 0 is for ever
    #[arg(long, value_name = "DAYS", group = "change")]
    pub events_kept_days: Option<u32>,
    /// Let runs ask humans for grants, or not
    #[arg(long, value_name = "SWITCH", group = "change")]
    pub runtime_requests: Option<Switch>,
    /// A model that runs may ask for, with what else it is called; again for each, the newest first
    #[arg(long, value_name = "ID[=NAME,…]", group = "change")]
    pub model: Vec<String>,
    /// Let runs ask for any model
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
    /// Its id
    pub id: String,
    /// End its runs, and delete it with everything in it: servers, capabilities, agents, secrets
    /// and services
    #[arg(long)]
    pub force: bool,
}

/// Commands for the members of a workspace.
#[derive(Debug, Subcommand)]
pub enum MembersCommand {
    /// List them with their roles
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Give one these roles, in place of those that it has
    #[command(after_help = "Examples:\n  narthex members set ada admin\n  \
        narthex members set team/ci author,runner --workspace team")]
    Set {
        /// Its name or id; a service has its workspace and / in front
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
    /// Take all roles from one; of a service the tokens are revoked, too
    Remove {
        /// Its name or id
        member: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

/// Commands for the tokens of services.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// List all that there ever were, without themselves
    List {
        #[command(flatten)]
        place: WorkspaceArgs,
    },
    /// Make one and show it once
    Create(NewTokenArgs),
    /// Let one open nothing any more, at once
    Revoke {
        /// Its id
        id: String,
        #[command(flatten)]
        place: WorkspaceArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  narthex tokens create ci --role runner --label build\n  \
    narthex tokens create ci --expires-in 30 --quiet > ci.token")]
pub struct NewTokenArgs {
    /// The service; one that is not there yet is made
    pub service: String,
    /// A role of a new service; may be said several times
    #[arg(long = "role", value_parser = role)]
    pub roles: Vec<Role>,
    /// What it is for
    #[arg(long)]
    pub label: Option<String>,
    /// After how many days it opens nothing any more [default: 90]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3650))]
    pub expires_in: Option<u64>,
    #[command(flatten)]
    pub place: WorkspaceArgs,
}

fn role(text: &str) -> Result<Role, String> {
    let all = Role::ALL.map(Role::as_str);
    Role::parse(text).ok_or_else(|| {
        let hint =
            did_you_mean(text, all).unwrap_or_else(|| format!("the roles are {}", all.join(", ")));
        format!("there is no such role; {hint}")
    })
}
