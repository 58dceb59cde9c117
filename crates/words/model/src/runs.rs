//! The words of runs: ids that are short enough to be typed, and numbers of runs.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{McpClientId, ProfileName, ids::id};

id! {
    /// The id of a run, such as `run_0a1b2c3d4e5f` (O73); no secret.
    RunId, "run_", 6
}
id! {
    /// The id of a session, the long-lived thing that an agent is doing: `ses_0a1b2c3d4e5f`.
    SessionId, "ses_", 6
}

impl RunId {
    /// The id of the run by which clients of this run see through a profile. The same profile has
    /// the same id, also after a restart.
    #[must_use]
    pub fn of_profile(self, name: &ProfileName) -> Self {
        self.derived("profile", name.as_str())
    }

    /// The id of the run by which a registered client sees through the profile of this run.
    #[must_use]
    pub fn of_client(self, id: &McpClientId) -> Self {
        self.derived("client", id.as_str())
    }

    fn derived(self, kind: &str, of: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(kind)
            .chain_update([0])
            .chain_update(self.bytes())
            .chain_update(of)
            .finalize();
        let mut id = [0; Self::BYTES];
        id.copy_from_slice(&digest[..Self::BYTES]);
        Self::new(id)
    }
}

/// The number of a run in its workspace, from 1 on; 0 is the daemon's own run. No number is given
/// twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(u64);

impl Pid {
    /// The pid of the daemon's own run, which is in no workspace's count: no other run has its
    /// paths.
    pub const OWN: Self = Self(0);

    /// The pid of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The pid of a run that a workspace counts; `None` for 0.
    #[must_use]
    pub fn counted(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The pid's number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// A caller ended the run, or its session.
    Ended,
    /// The run's time was over.
    Expired,
    /// The parent run ended its session.
    Cancelled,
    /// The process that carried it out failed.
    Failed,
}

impl RunEnd {
    /// All ends.
    pub const ALL: [Self; 4] = crate::every![Ended, Expired, Cancelled, Failed];

    /// The end's spelling in JSON, in the store and in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// The end that is spelt so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O73: a prefix and twelve hexadecimal digits, written in one way only.
    #[test]
    fn o73_ids_are_a_prefix_and_twelve_digits() {
        let run = RunId::new([0x0a, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f]);
        assert_eq!(run.to_text(), "run_0a1b2c3d4e5f");
        assert_eq!(RunId::parse("run_0a1b2c3d4e5f"), Some(run));
        assert_eq!(SessionId::new(run.bytes()).to_string(), "ses_0a1b2c3d4e5f");
        for bad in [
            "",
            "run_",
            "0a1b2c3d4e5f",
            "ses_0a1b2c3d4e5f",
            "run_0A1B2C3D4E5F",
            "run_0a1b2c3d4e5",
            "run_0a1b2c3d4e5f0",
            "run_0a1b2c3d4e5g",
            "run_0a1b2c3d4eäx",
        ] {
            assert_eq!(RunId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_profile_has_its_own_id_in_each_run() {
        let of = |run: u8, name: &str| {
            RunId::new([run; RunId::BYTES]).of_profile(&ProfileName::new(name).unwrap())
        };
        assert_eq!(of(1, "work"), of(1, "work"));
        let ids = [of(1, "work"), of(1, "home"), of(2, "work"), RunId::new([1; RunId::BYTES])];
        assert_eq!(ids.into_iter().collect::<std::collections::HashSet<_>>().len(), 4);
    }

    #[test]
    fn pids_of_a_workspace_count_from_one() {
        assert_eq!(Pid::counted(0), None);
        assert_eq!(Pid::counted(7).unwrap().to_string(), "7");
        assert_eq!((Pid::OWN, Pid::OWN.to_string()), (Pid::new(0), "0".to_owned()));
    }
}
