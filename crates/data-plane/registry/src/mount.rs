//! A set of servers mounted for one owner: all servers or none, or as many as possible.
//!
//! All servers connect at the same time, so that a set takes as long as its slowest server (R-M9),
//! and each server has its own deadlines. A set that fails leaves no process, no place and no
//! connection behind (R-M12).

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use narthex_model::{
    Alias, CallErrorKind, ServerAuth, ServerDefinition, ServerFailure, ServerState, Target,
    command::narthex,
};
use narthex_upstream::{CutReason, Ended, Holder};

use crate::{
    ConnectionId, Found, Mount, Registry,
    connection::{Before, Settings},
    pool::PoolKey,
};

/// Time that the whole of mounting may take (R-M11).
const MOUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// Options for mounting a set.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// Time that each server may take from its start to its last list. The time in which a package
    /// runner downloads the program does not count. Default: 5 s.
    pub timeout: Duration,
    /// True if one failure undoes the whole set. Servers marked as optional may still fail.
    /// Default: true.
    pub is_strict: bool,
    /// The human whose grants the set uses at servers to which a person signs in. `None`: such a
    /// server is `authenticating`, and is not connected.
    pub holder: Option<Holder>,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self { timeout: MOUNT_TIMEOUT, is_strict: true, holder: None }
    }
}

/// The callers that may share a connection (D12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// All callers that have the same server, configuration and credential.
    Everybody,
    /// Only mounts with the same number.
    Only(u64),
}

/// One server of a set.
#[derive(Debug, Clone)]
pub struct Mountable {
    /// The server to connect.
    pub definition: Arc<ServerDefinition>,
    /// True if a strict set is mounted without the server when it fails (D17).
    pub is_optional: bool,
    /// The callers that may share the connection.
    pub sharing: Sharing,
    /// Identity of the server besides its configuration.
    pub identity: Arc<MountIdentity>,
}

/// Identity of a mounted server besides its configuration: two mounts share a connection only if
/// their identities are equal, too (D12).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct MountIdentity {
    /// Server of a catalog, across all workspaces. `None` for the live configuration's server of
    /// this alias, which can be disabled there.
    pub server: Option<Arc<str>>,
    /// The secrets in its configuration, across all workspaces, each as `name` and version.
    pub secrets: Vec<(Arc<str>, u64)>,
    /// Owner of the credential, if the credential is not in the definition.
    pub credential: Option<Arc<str>>,
}

impl Mountable {
    /// A server of the live configuration that must start, shared with all callers.
    #[must_use]
    pub fn new(definition: Arc<ServerDefinition>) -> Self {
        let (sharing, identity) = (Sharing::Everybody, Arc::default());
        Self { definition, is_optional: false, sharing, identity }
    }
}

/// A mounted set. Dropping it releases all its mounts; [`MountSet::unmount`] also waits.
#[derive(Debug, Default)]
pub struct MountSet {
    mounts: Vec<Mount>,
    faults: Vec<MountFault>,
}

/// The reason why one server is not mounted.
#[derive(Debug, Clone, PartialEq)]
pub struct MountFault {
    /// The server.
    pub alias: Alias,
    /// The failure.
    pub error: ServerFailure,
    /// The server's last lines on stderr.
    pub lines: Vec<String>,
}

/// A strict set that could not be mounted. All its mounts are undone.
#[derive(Debug, Clone, PartialEq)]
pub struct MountError {
    /// Every server that failed, in the order of the set.
    pub faults: Vec<MountFault>,
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no server was mounted")?;
        let mut before = ": ";
        for MountFault { alias, error, .. } in &self.faults {
            write!(f, "{before}server `{alias}`: {}", error.for_operators())?;
            before = "; ";
        }
        Ok(())
    }
}

impl std::error::Error for MountError {}

/// Outcome of releasing one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmounted {
    /// The server.
    pub alias: Alias,
    /// The way the server ended; `None` while other mounts use it.
    pub ended: Option<Ended>,
}

/// A set that is being mounted.
struct Begun {
    /// The started servers, each with a flag that is true if it may fail.
    mounted: Vec<(Mount, bool)>,
    /// The servers that may not be started.
    faults: Vec<MountFault>,
}

impl Registry {
    /// Mounts a set of servers and waits until each is ready or has failed. Waits for a connection
    /// that another caller is making (R-E4). A server that needs a person's sign-in is
    /// `authenticating`, which is no failure (D17); without a holder it is not even connected. A
    /// server whose token cannot be had for now is tried again, and is no failure either. A server
    /// that is switched off is refused; a later switch-off also ends its mounts (D10).
    ///
    /// # Errors
    /// In a strict set, when a server fails or is off that is not optional, or two have one alias.
    /// Then all mounts of the set are undone, and no process is left when this returns.
    pub async fn mount(
        &self,
        set: Vec<Mountable>,
        options: &MountOptions,
    ) -> Result<MountSet, MountError> {
        let Begun { mounted, mut faults } = self.begin(set, options)?;
        let mut is_undone = false;
        let mut mounts = Vec::with_capacity(mounted.len());
        for (mount, is_optional) in mounted {
            let found = mount.settled().await;
            match fault(&mount, &found) {
                None => mounts.push(mount),
                Some(fault) => {
                    faults.push(fault);
                    is_undone |= options.is_strict && !is_optional;
                    mount.unmount().await;
                }
            }
        }
        let set = MountSet { mounts, faults };
        if is_undone {
            let faults = set.faults.clone();
            set.unmount().await;
            return Err(MountError { faults });
        }
        Ok(set)
    }

    /// A further reference to the mount of this number, if any caller holds the mount.
    #[must_use]
    pub fn mounted(&self, id: ConnectionId) -> Option<Mount> {
        self.shared.pool.of_id(id)
    }

    /// Ends at once the connections of the mounts that `is_meant` selects, as if their server had
    /// been disabled (D10): open and later calls fail for this reason. Rows of the
    /// configuration do not change.
    pub fn cut(&self, reason: &CutReason, is_meant: impl Fn(&MountIdentity) -> bool) {
        for mount in self.shared.pool.of_identity(is_meant) {
            mount.connection().cut_for(&self.shared, reason.clone());
        }
    }

    /// Marks connections that were ended for a cleared secret: the secret is set again. They stay
    /// ended, as a run keeps the values of its creation (D10).
    pub fn secret_set_again(&self, is_meant: impl Fn(&MountIdentity) -> bool) {
        for mount in self.shared.pool.of_identity(is_meant) {
            mount.connection().secret_set_again(&self.shared);
        }
    }

    /// Starts the servers that may be started: none, in a strict set with a server that may not.
    fn begin(&self, set: Vec<Mountable>, options: &MountOptions) -> Result<Begun, MountError> {
        // The lock keeps every caller from switching a server off between the check and the start.
        let rows = self.shared.rows();
        let mut seen = HashSet::new();
        let mut wanted = Vec::with_capacity(set.len());
        let mut faults = Vec::new();
        let mut is_refused = false;
        for mountable in set {
            let definition = &mountable.definition;
            let is_optional = mountable.is_optional;
            let is_twice = !seen.insert(definition.alias.clone());
            let is_off = match mountable.identity.server {
                Some(_) => definition.is_disabled,
                None => rows.is_off(definition),
            };
            let error = if is_twice {
                let text = "another server of the set has this alias";
                ServerFailure::new(CallErrorKind::TransportError, text)
            } else if is_off {
                ServerFailure::new(CallErrorKind::ServerDisabled, off(&mountable))
            } else {
                wanted.push(mountable);
                continue;
            };
            let (alias, lines) = (definition.alias.clone(), Vec::new());
            faults.push(MountFault { alias, error, lines });
            is_refused |= options.is_strict && (is_twice || !is_optional);
        }
        if is_refused {
            return Err(MountError { faults });
        }
        let start = |one: Mountable| (self.mount_one(&one, options), one.is_optional);
        Ok(Begun { mounted: wanted.into_iter().map(start).collect(), faults })
    }

    fn mount_one(&self, mountable: &Mountable, options: &MountOptions) -> Mount {
        let (shared, definition) = (&self.shared, &mountable.definition);
        let (digest, identity) = (shared.key.of(definition), mountable.identity.clone());
        let is_per_user = definition.is_per_user();
        let has_source = shared.options.credentials.is_some();
        // The grant of a human is for servers to which humans sign in.
        let holder = options.holder.as_ref().filter(|_| is_per_user && has_source);
        let key = PoolKey::new(definition, digest, identity, mountable.sharing).held_by(holder);
        let deadlines = shared.options.deadlines.within(options.timeout);
        let idle_stop = shared.options.idle_stop;
        let settings = Settings {
            deadlines,
            idle_stop,
            awaits_consent: definition.awaits_consent() && holder.is_none(),
            signs_in: holder.is_some() || is_of_catalog(mountable) && !is_per_user,
        };
        shared.mount(key, definition, settings, Before::default())
    }
}

/// True for a server of a catalog whose entry names OAuth. An entry of a run's own must not get the
/// tokens of a server that has the same name elsewhere. Remote servers whose entries name no
/// sign-in are asked without one, even if they want one.
fn is_of_catalog(mountable: &Mountable) -> bool {
    let Target::Http(target) = &mountable.definition.target else { return false };
    mountable.identity.server.is_some() && matches!(target.auth, ServerAuth::OAuth(_))
}

/// The error text for a server that is disabled, with the way to enable it.
fn off(mountable: &Mountable) -> String {
    match mountable.identity.server {
        Some(_) => "it is disabled in the catalog; an admin of the workspace must store it with \
                    `disabled` false"
            .to_owned(),
        None => {
            let enable = narthex("mcp enable {}", &[&mountable.definition.alias]);
            format!("it is disabled; `{enable}` enables it")
        }
    }
}

fn fault(mount: &Mount, found: &Found) -> Option<MountFault> {
    let is_fine = matches!(found.state, ServerState::Ready | ServerState::Authenticating);
    if is_fine || waits_for_token(found) {
        return None;
    }
    let text = || "it was stopped before it was ready".to_owned();
    // No mount is left of a set that failed, so narthex tries none of its servers again.
    let error = found.cause();
    let error = error.unwrap_or_else(|| ServerFailure::new(CallErrorKind::TransportError, text()));
    Some(MountFault { alias: mount.alias().clone(), error, lines: found.log.tail() })
}

/// True for a server whose token cannot be had for now, and that is tried again: as for a server
/// that waits for a person, that is no failure of the set (X-E47).
fn waits_for_token(found: &Found) -> bool {
    let is_of_token = |error: &ServerFailure| matches!(error.kind, CallErrorKind::AuthUnavailable);
    let is_tried_again = found.state == ServerState::Error && found.is_probed;
    is_tried_again && found.error.as_ref().is_some_and(is_of_token)
}

impl MountSet {
    /// The mounted servers, in the order of the set.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The mount of an alias; `None` if the set has no such mount.
    #[must_use]
    pub fn get(&self, alias: &str) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.alias().as_str() == alias)
    }

    /// The servers that could not be mounted, and the reasons.
    #[must_use]
    pub fn faults(&self) -> &[MountFault] {
        &self.faults
    }

    /// Releases all mounts in order, and waits until each server without other users has ended
    /// (R-M22).
    pub async fn unmount(self) -> Vec<Unmounted> {
        let mut all = Vec::with_capacity(self.mounts.len());
        for mount in self.mounts {
            let alias = mount.alias().clone();
            all.push(Unmounted { alias, ended: mount.unmount().await });
        }
        all
    }
}
