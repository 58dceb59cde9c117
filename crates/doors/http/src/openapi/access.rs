//! One row of the table of routes.

use narthex_model::Role;

/// One path with some of its methods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The path; a segment in braces matches any one segment.
    pub template: &'static str,
    /// The methods, as the header `Allow` lists them.
    pub methods: &'static str,
    /// The callers that may come in.
    pub access: Access,
}

/// The callers that may come in at a route. An operator may at all of them but the clients'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Any caller: only health, which shows nothing else.
    Open,
    /// Any caller with a proof of the route's own, which is this text (D4): a human has no token
    /// before the sign-in.
    Own(&'static str),
    /// The bearer of a run's token.
    Client,
    /// The bearer of a run's token, who sees what the run has, or an operator.
    Shared,
    /// Like [`Access::Shared`], but only for a run that has all shared servers and no others: the
    /// answer is about all servers together.
    Whole,
    /// An operator alone: an agent must not disable servers, change them or read what they
    /// write to stderr.
    Operator,
    /// Every human and service; they see what they may.
    Known,
    /// A human or a service with one of these roles in the workspace of the path.
    Member(&'static [Role]),
    /// Like [`Access::Member`], or a run of this workspace, for its children and its session.
    Starter(&'static [Role]),
    /// A run of this workspace alone, for its session.
    OwnRun,
}
