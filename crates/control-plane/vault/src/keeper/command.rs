//! The key ring in a keychain, through a program that accesses the keychain.
//!
//! Keys go through pipes alone: other processes can read arguments and variables. No keychain
//! guarantees that it has stored a value, so the ring is read back after it was stored.

mod run;

use std::{ffi::OsString, path::Path, time::Duration};

use zeroize::Zeroizing;

pub use run::CommandFault;
use run::{Answer, Question};

use super::{Keeper, KeeperError};
use crate::{KeyRing, MasterKey};

/// Longest time for a program: a keychain may ask its user for a password.
const LIMIT: Duration = Duration::from_secs(30);
/// The exit code of `security` where it finds nothing.
const MACOS_ABSENT: i32 = 44;

/// A keychain that an operating system provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keychain {
    /// The keychain of Linux desktops (such as GNOME Keyring), by `secret-tool`.
    SecretService,
    /// The keychain of macOS, by `security`.
    MacOs,
}

impl Keychain {
    /// The keychain of this system.
    #[must_use]
    pub fn usual() -> Self {
        if cfg!(target_os = "macos") { Self::MacOs } else { Self::SecretService }
    }
}

/// A key ring that programs load and store.
#[derive(Debug)]
pub struct KeyCommand {
    place: String,
    load: Vec<String>,
    store: Vec<String>,
    manner: Manner,
    hidden: Vec<OsString>,
    limit: Duration,
}

/// The differences between programs.
#[derive(Debug)]
enum Manner {
    /// The program succeeds and prints nothing if there is no ring yet.
    Plain,
    /// `secret-tool` fails without a message if there is no ring, and also if the user does not
    /// unlock it. The search names the stored items, locked or not.
    SecretTool { search: Vec<String> },
    /// `security` would take the key as an argument, so its command line goes through the pipe.
    Security { account: String },
}

impl KeyCommand {
    /// Takes the programs with their arguments. `load` prints the ring; if there is none yet, it
    /// succeeds and prints nothing. `store` reads one line with the ring.
    #[must_use]
    pub fn new(load: Vec<String>, store: Vec<String>) -> Self {
        let place = "the keychain of `vault.key_command`".to_owned();
        Self { place, load, store, manner: Manner::Plain, hidden: Vec::new(), limit: LIMIT }
    }

    /// A keychain of the system, which finds the ring by the path of the data directory.
    ///
    /// # Errors
    /// When the keychain cannot take the path.
    pub fn keychain(keychain: Keychain, data: &Path) -> Result<Self, KeeperError> {
        let unsaid = || KeeperError::KeychainPath(data.to_owned());
        let data = data.to_str().ok_or_else(unsaid)?;
        if keychain == Keychain::MacOs {
            if data.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
                return Err(unsaid());
            }
            let load = ["security", "find-generic-password", "-s", "narthex", "-a", data, "-w"];
            return Ok(Self {
                place: format!("the keychain of macOS (service narthex, account {data})"),
                manner: Manner::Security { account: data.to_owned() },
                ..Self::new(words(&load), words(&["security", "-i"]))
            });
        }
        let with = |first: &[&str]| {
            let attributes = ["application", "narthex", "data-dir", data];
            words(&[&["secret-tool"], first, &attributes].concat())
        };
        Ok(Self {
            place: format!("the Secret Service (application narthex, data-dir {data})"),
            manner: Manner::SecretTool { search: with(&["search", "--all"]) },
            ..Self::new(with(&["lookup"]), with(&["store", "--label", "Master keys of narthex"]))
        })
    }

    /// Removes these variables of this process from the programs' environment.
    #[must_use]
    pub fn without(self, hidden: Vec<OsString>) -> Self {
        Self { hidden, ..self }
    }

    fn failed(&self, fault: CommandFault) -> KeeperError {
        let remedy = match (&fault, &self.manner) {
            (CommandFault::Start { .. }, Manner::SecretTool { .. }) => {
                "install it (in Debian it is in libsecret-tools)"
            }
            (CommandFault::Start { .. }, Manner::Security { .. }) => "it exists only on macOS",
            (_, Manner::Plain) => "check `vault.key_command` in the settings",
            _ => "check that it runs in the session of the daemon's user, and is unlocked",
        };
        KeeperError::Command { place: self.place.clone(), fault, remedy }
    }

    fn ask(&self, words: &[String], input: Option<&str>) -> Result<Answer, KeeperError> {
        let question = Question { words, input, hidden: &self.hidden, limit: self.limit };
        run::run(&question).map_err(|fault| self.failed(fault))
    }

    /// True if the program's failure means that there is no ring.
    fn is_absent(&self, answer: &Answer) -> Result<bool, KeeperError> {
        let is_silent = answer.out.is_empty() && answer.said.is_empty();
        match &self.manner {
            Manner::Plain => Ok(false),
            Manner::Security { .. } => {
                Ok(answer.out.is_empty() && answer.status.code() == Some(MACOS_ABSENT))
            }
            Manner::SecretTool { search } => {
                if !is_silent || answer.status.code() != Some(1) {
                    return Ok(false);
                }
                let found = self.ask(search, None)?;
                match (found.out.is_empty(), found.said.is_empty()) {
                    (true, true) => Ok(true),
                    (true, false) => Err(self.failed(found.failure(search))),
                    (false, _) => Err(self.failed(CommandFault::Locked)),
                }
            }
        }
    }

    fn store(&self, ring: &KeyRing) -> Result<(), KeeperError> {
        let answer = self.ask(&self.store, Some(&self.stored_line(ring)))?;
        match answer.status.success() {
            true => Ok(()),
            false => Err(self.failed(answer.failure(&self.store))),
        }
    }

    /// The line that the program reads: all keys with commas between them.
    fn stored_line(&self, ring: &KeyRing) -> Zeroizing<String> {
        let begin = match &self.manner {
            Manner::Security { account } => {
                format!("add-generic-password -U -s narthex -a \"{account}\" -w ")
            }
            Manner::Plain | Manner::SecretTool { .. } => String::new(),
        };
        let keys = ring.write();
        // At once as long as it gets: a text that moves leaves a copy behind.
        let mut line = Zeroizing::new(String::with_capacity(begin.len() + keys.len()));
        line.push_str(&begin);
        for (at, key) in keys.lines().enumerate() {
            if at > 0 {
                line.push(',');
            }
            line.push_str(key);
        }
        line.push('\n');
        line
    }
}

impl Keeper for KeyCommand {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn load(&self) -> Result<Option<KeyRing>, KeeperError> {
        let answer = self.ask(&self.load, None)?;
        if !answer.status.success() {
            return match self.is_absent(&answer)? {
                true => Ok(None),
                false => Err(self.failed(answer.failure(&self.load))),
            };
        }
        if answer.out.is_empty() {
            return Ok(None);
        }
        let text = std::str::from_utf8(&answer.out)
            .map_err(|_position| self.failed(CommandFault::Text))?;
        let ring = KeyRing::parse(text);
        ring.map(Some).map_err(|fault| KeeperError::Content { place: self.place(), fault })
    }

    fn create(&self) -> Result<KeyRing, KeeperError> {
        // A ring that another process has stored serves as well.
        if let Some(ring) = self.load()? {
            return Ok(ring);
        }
        let ring = KeyRing::new(MasterKey::generate().map_err(KeeperError::Randomness)?);
        self.store(&ring)?;
        self.load()?.ok_or_else(|| self.failed(CommandFault::NotKept))
    }

    fn replace(&self, ring: &KeyRing) -> Result<(), KeeperError> {
        self.store(ring)?;
        match self.load()?.as_ref() == Some(ring) {
            true => Ok(()),
            false => Err(self.failed(CommandFault::NotKept)),
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests;
