//! The one decision function (D13): may a run send a request, and by which grants?

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
    time::SystemTime,
};

use arc_swap::Guard;
use narthex_model::{ArgumentsDigest, EVERYTHING, Exposed, Gates, GrantId, NO_GATES, ToolScopes};
use narthex_wire::method;

use crate::{
    Acting, Actors, Denial, Grants, Item, LiveGrant, Request, Ruling, RunPolicy, Site,
    WorkspaceRules, digest::digest_of, grants::Use, rules::Permitted,
};

/// The checks of a request, in their order. The first failed check refuses the request, and is
/// named in the audit.
///
/// The caller of policy drops definitions under review from the inventory of a run's server before
/// it asks policy, and reports that check by name.
pub const CHECKS: [&str; 5] = ["attached", "exposed", "definitions", "rules", "grants"];

/// Rules of a request's server, as they are frozen with the run.
#[derive(Debug, Clone, Copy)]
pub struct ServerRules<'a> {
    /// The filter of the server's names that callers may see.
    pub exposed: &'a Exposed,
    /// The tool scopes that names of the server require.
    pub gates: &'a Gates,
    /// The server's id in the catalog, which grants refer to (D14). Grants do not use the run's
    /// alias, as authors of agents choose aliases. `None` for a server of no catalog; grants then
    /// use its alias.
    pub id: Option<&'a str>,
}

/// The actors of a run, their grants, and the rules of its workspace. Clones share the actors.
#[derive(Debug, Clone)]
pub struct Authority {
    acting: Arc<Acting>,
    /// The grants of its workspace.
    pub grants: Arc<Grants>,
    /// The rules of its workspace.
    pub rules: Arc<WorkspaceRules>,
}

/// The grants of a run without any: one table for all, as a table of grants is not small.
static NO_GRANTS: LazyLock<Arc<Grants>> = LazyLock::new(Arc::default);

impl Default for Authority {
    /// The authority of a run that acts for no user.
    fn default() -> Self {
        let (grants, rules) = (NO_GRANTS.clone(), WorkspaceRules::none());
        Self::new(Actors::default(), grants, rules)
    }
}

/// Facts about one try of a request.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    /// Returns the time. Not called if no gate applies and there are no rules.
    pub now: fn() -> SystemTime,
    /// The grants for a single call that earlier tries or rounds of the same call have used up.
    pub paid: &'a [GrantId],
    /// Returns further facts for rules. Not called if there are no rules.
    pub site: &'a dyn Fn(&Request) -> Site<'a>,
}

/// The grants that allow a request; empty if no tool scope is required.
#[derive(Debug, Clone, Default)]
pub struct Basis(Vec<Arc<LiveGrant>>);

/// The outcome of a decision.
#[derive(Debug)]
pub enum Verdict {
    /// The request may be forwarded.
    Permit(Permitted<Request>),
    /// The request may be forwarded once its grants for a single call are used up in the store.
    /// They are reserved for this call.
    Unpaid(Unpaid),
}

/// A request that uses grants up. The grants are reserved: no other call gets them until
/// [`Self::paid`], [`Self::gone`] or [`Self::put_back`]. Dropping this loses them.
#[derive(Debug)]
pub struct Unpaid {
    request: Request,
    basis: Basis,
    taken: Vec<Arc<LiveGrant>>,
}

/// Returns the empty site, of a request whose origin is unknown.
fn nowhere<'a>(_request: &Request) -> Site<'a> {
    Site::default()
}

impl<'a> Attempt<'a> {
    /// A first try without facts for rules.
    #[must_use]
    pub fn first(now: fn() -> SystemTime) -> Self {
        Self { now, paid: &[], site: &nowhere }
    }
}

impl std::fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("paid", &self.paid).finish_non_exhaustive()
    }
}

impl ServerRules<'static> {
    /// The rules of a server that hides nothing and requires nothing.
    pub const OPEN: Self = Self { exposed: &EVERYTHING, gates: &NO_GATES, id: None };
}

impl Verdict {
    /// The grants that allow the request.
    #[must_use]
    pub fn basis(&self) -> &Basis {
        match self {
            Self::Permit(permitted) => permitted.basis(),
            Self::Unpaid(unpaid) => &unpaid.basis,
        }
    }

    /// The permitted request; `None` if grants must be used up first.
    #[must_use]
    pub fn permitted(self) -> Option<Permitted<Request>> {
        match self {
            Self::Permit(permitted) => Some(permitted),
            Self::Unpaid(_) => None,
        }
    }
}

impl Basis {
    /// The ids of the grants.
    pub fn ids(&self) -> impl Iterator<Item = GrantId> {
        self.0.iter().map(|live| live.grant().id)
    }

    /// True if no grant was required.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grants that are for a single call.
    pub fn single(&self) -> impl Iterator<Item = GrantId> {
        let is_single = |live: &&Arc<LiveGrant>| live.grant().duration.is_single();
        self.0.iter().filter(is_single).map(|live| live.grant().id)
    }

    /// True if all these grants still count for the actors of a run.
    #[must_use]
    pub fn counts(&self, actors: &Actors, now: SystemTime) -> bool {
        self.0.iter().all(|live| live.counts(actors, now))
    }

    /// Adds the grants of another basis.
    pub fn join(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The earliest expiry of the grants; `None` if none expires.
    #[must_use]
    pub fn ends_at(&self) -> Option<SystemTime> {
        self.0.iter().filter_map(|live| live.grant().expires_at).min()
    }
}

impl Unpaid {
    /// The ids of the grants to be used up in the store.
    pub fn ids(&self) -> impl Iterator<Item = GrantId> {
        self.taken.iter().map(|live| live.grant().id)
    }

    /// Permits the request, after the store has used up all its grants for this call.
    #[must_use]
    pub fn paid(self) -> Permitted<Request> {
        Permitted::new(self.request, self.basis)
    }

    /// Returns the request, after the store has used up none of its grants. Grants in `gone` no
    /// longer count: another call has them, or they were revoked. The others are free for the next
    /// call.
    #[must_use]
    pub fn gone(self, gone: &[GrantId]) -> Request {
        for live in &self.taken {
            match gone.contains(&live.grant().id) {
                true => live.end(),
                false => live.put_back(),
            }
        }
        self.request
    }

    /// Returns the request and frees its grants, if the store was not asked or did not answer.
    #[must_use]
    pub fn put_back(self) -> Request {
        self.taken.iter().for_each(|live| live.put_back());
        self.request
    }
}

impl RunPolicy {
    /// Decides on one request, and seals it if it may be sent. The same inputs give the same
    /// decision, at every door. A grant for a single call is reserved for this request.
    ///
    /// # Errors
    /// The reason for a refusal; the request is consumed.
    pub fn authorize(
        &self,
        request: Request,
        rules: ServerRules<'_>,
        authority: &Authority,
        attempt: Attempt<'_>,
    ) -> Result<Verdict, Denial> {
        if !self.is_attached(&request.alias) {
            return Err(Denial::NotAttached(request.alias));
        }
        let made_by = request.origin.as_ref().map(|origin| &*origin.tool);
        if !request.item.is_exposed(rules.exposed)
            || !self.shows(&request.alias, &request.item, made_by)
        {
            return Err(Denial::Hidden(request.item));
        }
        let actors = authority.actors();
        let ruling = authority.rules.ask(&actors, &request, attempt.site, attempt.now);
        let required = narrowed(&request, request.required(rules.gates), ruling)?;
        if required.is_empty() {
            return Ok(Verdict::Permit(Permitted::new(request, Basis::default())));
        }
        let server = rules.id.unwrap_or(request.alias.as_str());
        let (basis, taken) = authority.pay(&actors, (&request, server), &required, attempt)?;
        if taken.is_empty() {
            return Ok(Verdict::Permit(Permitted::new(request, basis)));
        }
        Ok(Verdict::Unpaid(Unpaid { request, basis, taken }))
    }
}

/// The required tool scopes after the rules of the workspace have added theirs or forbidden the
/// use.
fn narrowed<'a>(
    request: &Request,
    required: Cow<'a, ToolScopes>,
    ruling: Option<Ruling>,
) -> Result<Cow<'a, ToolScopes>, Denial> {
    let Some(Ruling { forbidden, scopes, .. }) = ruling else { return Ok(required) };
    if let Some(by) = forbidden {
        return Err(Denial::Forbidden { item: request.item.clone(), by });
    }
    if scopes.is_subset(&required) {
        return Ok(required);
    }
    Ok(Cow::Owned(required.into_owned().into_iter().chain(scopes).collect()))
}

impl Authority {
    /// The authority of a run with these first actors.
    #[must_use]
    pub fn new(actors: Actors, grants: Arc<Grants>, rules: Arc<WorkspaceRules>) -> Self {
        Self { acting: Arc::new(Acting::new(actors)), grants, rules }
    }

    /// The present actors of the run.
    #[must_use]
    pub fn actors(&self) -> Guard<Arc<Actors>> {
        self.acting.now()
    }

    /// The shared actors, for the caller that reports a new turn.
    #[must_use]
    pub fn acting(&self) -> &Arc<Acting> {
        &self.acting
    }

    /// Finds a grant for each scope. Uses up all found grants for a single call, or none.
    fn pay(
        &self,
        actors: &Actors,
        (request, server): (&Request, &str),
        required: &ToolScopes,
        attempt: Attempt<'_>,
    ) -> Result<(Basis, Vec<Arc<LiveGrant>>), Denial> {
        let wanted = Use {
            server,
            name: request.granted_name(),
            arguments: request.arguments_digest(),
            at: (attempt.now)(),
        };
        let origin = request.origin.as_ref().map_or(&[][..], |origin| &origin.paid);
        let paid = [attempt.paid, origin].concat();
        loop {
            let mut found: Vec<Arc<LiveGrant>> = Vec::with_capacity(required.len());
            let mut missing = Vec::new();
            for scope in required {
                let grant = self.grants.taken(actors, scope, &wanted, &paid);
                let grant = grant.or_else(|| self.grants.find(actors, scope, &wanted));
                match grant {
                    Some(grant) => found.push(grant),
                    None => missing.push(scope.clone()),
                }
            }
            if !missing.is_empty() {
                let has_digest = wanted.arguments.is_some();
                let (server, item) = (server.into(), request.item.clone());
                let name = wanted.name.into();
                return Err(Denial::Ungranted { server, item, name, missing, has_digest });
            }
            let is_paid = |live: &Arc<LiveGrant>| paid.contains(&live.grant().id);
            let is_single = |live: &&Arc<LiveGrant>| live.grant().duration.is_single();
            let to_take: Vec<_> =
                found.iter().filter(is_single).filter(|live| !is_paid(live)).cloned().collect();
            match take_all(&to_take) {
                true => return Ok((Basis(found), to_take)),
                // Another call was quicker; there may be further ones.
                false => continue,
            }
        }
    }
}

/// Takes all, or none.
fn take_all(grants: &[Arc<LiveGrant>]) -> bool {
    for (index, live) in grants.iter().enumerate() {
        if !live.take() {
            grants[..index].iter().for_each(|taken| taken.put_back());
            return false;
        }
    }
    true
}

impl Request {
    /// The tool scopes that these gates require of the request (D14). A request about a task
    /// requires the scopes of the call that made the task.
    #[must_use]
    pub fn required<'a>(&self, gates: &'a Gates) -> Cow<'a, ToolScopes> {
        match (&self.item, &self.origin) {
            // A caller that ends its own subscription needs no permission.
            _ if self.message.method() == method::RESOURCES_UNSUBSCRIBE => {
                Cow::Owned(ToolScopes::new())
            }
            (Item::Tool(name), _) => Cow::Borrowed(gates.of_tool(name)),
            (Item::Prompt(name), _) => Cow::Borrowed(gates.of_prompt(name)),
            (Item::Resource(uri), _) => gates.of_resource(uri),
            (Item::Task(_), Some(origin)) => Cow::Borrowed(gates.of_tool(&origin.tool)),
            (Item::Task(_), None) | (Item::Server, _) => Cow::Owned(ToolScopes::new()),
        }
    }

    /// The digest of the request's arguments; `None` if they have no unambiguous digest.
    #[must_use]
    pub fn arguments_digest(&self) -> Option<ArgumentsDigest> {
        match &self.origin {
            Some(origin) => origin.arguments,
            None => digest_of(self.message.get("arguments")),
        }
    }

    /// The name under which grants know it: a task goes by the tool that made it.
    fn granted_name(&self) -> &str {
        self.origin.as_ref().map_or_else(|| self.item.name(), |origin| &origin.tool)
    }
}

#[cfg(test)]
mod tests;
