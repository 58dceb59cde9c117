//! A model of a registry without connections: a list of names, and the names that are disabled.

use std::collections::BTreeSet;

use narthex_model::ServerState;

/// Random numbers from a seed (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit as u64).expect("the limit is one")
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// The names there may be; the last one is a child process, the others are reached over HTTP.
pub(super) const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "child"];

/// The configuration of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Config {
    /// A working server; its lists depend on the version.
    Good(u8),
    /// A server as `Good`, but disabled in its entry.
    Off,
    /// No server listens at its address.
    Refused,
    /// No server at all.
    Fault,
}

impl Config {
    pub(super) fn random(random: &mut Random) -> Self {
        match random.below(10) {
            0 => Self::Off,
            1 => Self::Refused,
            2 => Self::Fault,
            number if number % 2 == 0 => Self::Good(1),
            _ => Self::Good(2),
        }
    }
}

/// The whole model.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) rows: Vec<(&'static str, Config)>,
    pub(super) disabled: BTreeSet<&'static str>,
}

impl Model {
    pub(super) fn get(&self, name: &str) -> Option<Config> {
        self.rows.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    pub(super) fn put(&mut self, name: &'static str, config: Config) {
        match self.rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => row.1 = config,
            None => self.rows.push((name, config)),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.rows.retain(|row| row.0 != name);
        self.disabled.remove(name);
    }

    /// The final state of a row.
    pub(super) fn state(&self, name: &str, config: Config) -> ServerState {
        match config {
            Config::Fault => ServerState::Error,
            Config::Off => ServerState::Disabled,
            _ if self.disabled.contains(name) => ServerState::Disabled,
            Config::Refused => ServerState::Error,
            Config::Good(_) => ServerState::Ready,
        }
    }

    /// The version that answers calls when the server is ready; `None` if no call may go to it.
    pub(super) fn version(&self, name: &str) -> Option<u8> {
        match self.get(name)? {
            Config::Good(version) if !self.disabled.contains(name) => Some(version),
            _ => None,
        }
    }
}
