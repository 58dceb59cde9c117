//! Reasons why permissions stay unchanged.

use narthex_model::{
    EnvBindingId, ErrorKind, PrincipalKind, PrincipalName, WorkspaceId,
    command::{CommandLine, narthex},
};

/// An error of a request that has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No principal of this id or name is visible to the caller.
    #[error(
        "there is no user or service `{0}` here; `{list}` lists users, and `{create}` creates one",
        list = narthex("users list", &[]),
        create = created(.0)
    )]
    UnknownPrincipal(String),
    /// No member of the workspace has this id or name. The text is the same for an existing
    /// principal, which the caller may not know of.
    #[error(
        "`{who}` is not a member of the workspace `{workspace}`; `{list}` lists its members, and \
         `{set}` adds a user, with this role or another",
        list = narthex("members list", &[]).in_workspace(.workspace),
        set = narthex("members set {} author", &[.who]).in_workspace(.workspace)
    )]
    UnknownMember {
        /// The id or the name.
        who: String,
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// A service or a client of the workspace, where a human is required.
    #[error(
        "`{0}` is a {kind}, not a human; name a human who is a member of the workspace",
        kind = .1.as_str()
    )]
    NoHuman(PrincipalName, PrincipalKind),
    /// The workspace has no such token.
    #[error(
        "there is no active token `{0}`; `{command}` lists all tokens",
        command = narthex("tokens list", &[])
    )]
    UnknownToken(String),
    /// Another principal has the name.
    #[error("the name `{0}` is taken; choose another name")]
    NameTaken(PrincipalName),
    /// A disabled principal has the name.
    #[error(
        "the name `{0}` belongs to a disabled account; choose another name, or enable the account \
         with `{command}`",
        command = narthex("users disable {} --undo", &[.0])
    )]
    NameDisabled(PrincipalName),
    /// Another workspace has the id.
    #[error("the workspace `{0}` exists already; choose another id")]
    WorkspaceTaken(WorkspaceId),
    /// The workspace is not empty.
    #[error(
        "the workspace `{workspace}` is not empty: it has {}; remove everything in it first, or \
         delete with `force=true`, which ends its runs and deletes the rest",
        told(.living))]
    Living {
        /// The workspace.
        workspace: WorkspaceId,
        /// Number of its objects, by kind.
        living: Vec<(&'static str, i64)>,
    },
    /// New runs were created faster than they were ended.
    #[error(
        "runs were created in the workspace `{0}` during its deletion; stop their client first"
    )]
    RunsBegin(WorkspaceId),
    /// The workspace `default` cannot be deleted.
    #[error("the workspace `default` cannot be deleted")]
    DefaultStays,
    /// The service exists with other roles.
    #[error(
        "the service `{0}` has other roles; leave `roles` out, or change them first, as with \
         `{command}`",
        command = narthex("members set {} author", &[.0])
    )]
    OtherRoles(PrincipalName),
    /// A service works only in its own workspace.
    #[error("`{0}` is a service of another workspace; name a service of this workspace")]
    ForeignService(PrincipalName),
    /// Services and clients cannot be operators.
    #[error("`{0}` is not a human, and only a human can be an operator")]
    NoHumanOperator(PrincipalName),
    /// MCP clients have no roles.
    #[error("`{0}` is an MCP client, which acts for its run and has no roles")]
    NoMember(PrincipalName),
    /// The workspace has no such client.
    #[error(
        "there is no active client `{0}`; `{command}` lists all clients",
        command = narthex("clients list", &[])
    )]
    UnknownClient(String),
    /// An active client has the name.
    #[error("the client `{0}` exists already; revoke it first, or choose another name")]
    ClientTaken(PrincipalName),
    /// The workspace has too many clients: more than this number.
    #[error(
        "the workspace has {0} active clients, which is the limit; revoke some with `{command}`",
        command = narthex("clients revoke ID", &[])
    )]
    TooManyClients(usize),
    /// The workspace has too many tokens: more than this number.
    #[error(
        "the workspace has {0} active tokens, which is the limit; revoke some with `{command}`",
        command = narthex("tokens revoke ID", &[])
    )]
    TooManyTokens(usize),
    /// The workspace has no such binding.
    #[error(
        "there is no binding `{0}`; `{command}` lists all bindings",
        command = narthex("env-bindings list", &[])
    )]
    UnknownBinding(String),
    /// The binding exists already.
    #[error("the binding `{0}` exists already; replace or remove it")]
    BindingTaken(EnvBindingId),
    /// The workspace has too many bindings: more than this number.
    #[error(
        "the workspace has {0} bindings, which is the limit; remove some, and list them with \
         `{command}`",
        command = narthex("env-bindings list", &[])
    )]
    TooManyBindings(usize),
    /// The store has not answered for too long.
    #[error("permissions cannot be refreshed from the store; check the database, then try again")]
    Stale,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    Randomness(#[source] getrandom::Error),
}

impl AccessError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownPrincipal(_)
            | Self::UnknownMember { .. }
            | Self::UnknownToken(_)
            | Self::UnknownClient(_)
            | Self::UnknownBinding(_) => ErrorKind::NotFound,
            Self::NameTaken(_)
            | Self::NameDisabled(_)
            | Self::WorkspaceTaken(_)
            | Self::BindingTaken(_)
            | Self::Living { .. }
            | Self::RunsBegin(_)
            | Self::DefaultStays
            | Self::OtherRoles(_)
            | Self::ForeignService(_)
            | Self::NoHumanOperator(_)
            | Self::NoMember(_)
            | Self::NoHuman(..)
            | Self::ClientTaken(_) => ErrorKind::Conflict,
            Self::TooManyTokens(_) | Self::TooManyClients(_) | Self::TooManyBindings(_) => {
                ErrorKind::Exhausted
            }
            Self::Stale | Self::Randomness(_) => ErrorKind::Unavailable,
        }
    }
}

/// The command that adds a human of this name, if a human can have it.
fn created(name: &str) -> CommandLine {
    match PrincipalName::new(name).is_ok_and(|name| name.unfit_for_humans().is_none()) {
        true => narthex("users create {}", &[&name]),
        false => narthex("users create NAME", &[]),
    }
}

fn told(living: &[(&'static str, i64)]) -> String {
    let told: Vec<_> = living.iter().map(|(what, count)| format!("{count} {what}")).collect();
    told.join(", ")
}
