//! Keeps what is mounted as the run has it, and sees when all is over.

use std::{collections::HashMap, time::Duration};

use narthex_model::Pid;
use narthex_vfs::{Failure, MountName, Mounted, Namespace, Process, ROOT};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::mounter::{
    Daemon,
    daemon::{GONE, OVER, Root},
    device::RemoteDevice,
};

/// Interval of the requests for the run's mounts.
const LOOKED_AT: Duration = Duration::from_millis(500);
/// Longest time for which a daemon on another machine may be out of reach.
const FAR_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for which a daemon on this machine may be out of reach.
const NEAR_PATIENCE: Duration = Duration::from_millis(250);
/// Pause between two attempts to reach the daemon.
const AGAIN: Duration = Duration::from_millis(50);

/// Why a mount is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The run has ended, or its token opens nothing any more.
    Run,
    /// The daemon is not there any more.
    Daemon {
        /// Why, for people.
        why: String,
    },
    /// A user or a program has unmounted the folder.
    Folder,
}

/// The mounted servers, by the daemon's last report.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) daemon: Daemon,
    pub(crate) namespace: Namespace,
    pub(crate) process: std::sync::Arc<Process>,
    /// Each mount with the number that distinguishes the server behind it from others.
    pub(crate) mounted: HashMap<MountName, (Mounted, Option<u64>)>,
}

impl Servers {
    /// Mounts what is there now, and unmounts what is not.
    pub(crate) fn be(&mut self, root: &Root) {
        let now: HashMap<_, _> = root
            .entries
            .iter()
            .filter_map(|entry| Some((MountName::parse(&entry.name)?, entry.server)))
            .collect();
        let namespace = &self.namespace;
        self.mounted.retain(|name, (mounted, server)| {
            match now.get(name) {
                Some(now) if now == server => {}
                // The answers of the earlier server are not the new server's.
                Some(now) => {
                    namespace.renew(mounted);
                    *server = *now;
                }
                None => {
                    namespace.unmount(mounted);
                }
            }
            now.contains_key(name)
        });
        for (name, server) in now {
            if self.mounted.contains_key(&name) {
                continue;
            }
            let device = RemoteDevice::new(self.daemon.clone(), name.clone());
            match namespace.mount(name.clone(), std::sync::Arc::new(device)) {
                Ok(mount) => drop(self.mounted.insert(name, (mount, server))),
                Err(error) => tracing::debug!(%error, "a server is not mounted"),
            }
        }
        let closed = root.closed.iter().filter_map(|name| MountName::parse(name));
        self.process.close_off(closed.collect());
        let name = |path: &str| MountName::parse(path.strip_prefix(ROOT)?.strip_prefix('/')?);
        for synonym in &root.synonyms {
            if let (Some(old), Some(now)) = (name(&synonym.path), name(&synonym.means)) {
                self.process.also(old, now);
            }
        }
    }

    /// Follows the daemon until the run, the daemon or the folder ends.
    pub(crate) async fn follow(&mut self, folder: &crate::Mounted, pid: Pid) -> Ended {
        let mut looks = interval(LOOKED_AT);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            match folder.is_mounted() {
                Ok(true) => {}
                Ok(false) => return Ended::Folder,
                Err(error) => tracing::debug!(%error, "the list of mounts cannot be read"),
            }
            match self.ask().await {
                Ok(root) if root.pid == pid.get() => {
                    self.be(&root);
                    folder.look_again();
                }
                Ok(_another) => return Ended::Run,
                Err(failure) if failure.kind == OVER => return Ended::Run,
                Err(failure) if failure.kind == GONE => {
                    // A daemon that stops takes no new connection, and ends its open calls, which
                    // are answered first. The calls of a killed daemon have ended.
                    while self.daemon.is_called() {
                        sleep(AGAIN).await;
                    }
                    return Ended::Daemon { why: failure.message };
                }
                Err(failure) => tracing::debug!("{}", failure.message),
            }
        }
    }

    /// Asks for the run's mounts, again for as long as the daemon may be out of reach.
    async fn ask(&self) -> Result<Root, Failure> {
        let patience = if self.daemon.is_local() { NEAR_PATIENCE } else { FAR_PATIENCE };
        let until = Instant::now() + patience;
        loop {
            match self.daemon.root().await {
                Err(failure) if failure.kind == GONE && Instant::now() < until => {
                    sleep(AGAIN).await;
                }
                answered => return answered,
            }
        }
    }
}
