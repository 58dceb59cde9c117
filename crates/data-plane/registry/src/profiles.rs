//! The profiles of the live configuration: those that clients can use, and those that are refused.

use std::{collections::BTreeSet, sync::Arc};

use narthex_model::{Profile, meant_hint};

use crate::config::{ProfileEntry, ProfileFault};

/// All profiles of the live configuration, in the order of their file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profiles(Vec<DeclaredProfile>);

/// A profile that the configuration has.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredProfile {
    /// The name as written, which may be invalid.
    pub name: String,
    /// The profile in use. `None` if it was refused from the start.
    pub profile: Option<Arc<Profile>>,
    /// The faults of the present content. With a fault, the profile in use is an earlier one.
    pub faults: Vec<ProfileFault>,
}

impl Profiles {
    /// Every profile, also refused ones.
    pub fn iter(&self) -> impl Iterator<Item = &DeclaredProfile> {
        self.0.iter()
    }

    /// The profile of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&DeclaredProfile> {
        self.0.iter().find(|one| one.name == name)
    }

    /// The profiles of these entries. One that names an unknown server is refused. A refused
    /// profile stays in use as it was before.
    pub(crate) fn next(&self, entries: &[ProfileEntry], servers: &BTreeSet<&str>) -> Self {
        let declared = |entry: &ProfileEntry| {
            let unknown = entry.servers.iter().filter(|(_, of)| !servers.contains(of.as_str()));
            let unknown = unknown.map(|(path, alias)| ProfileFault {
                path: path.clone(),
                message: no_server(alias.as_str(), servers),
            });
            let faults: Vec<_> = entry.faults.iter().cloned().chain(unknown).collect();
            let before = self.get(&entry.name).and_then(|before| before.profile.as_ref());
            let is_same = |before: &&Arc<Profile>| entry.profile.as_ref() == Some(*before);
            let profile = match faults.is_empty() {
                // An unchanged profile stays the same value, so that no view is made anew.
                true => before.filter(is_same).or(entry.profile.as_ref()),
                false => before,
            };
            DeclaredProfile { name: entry.name.clone(), profile: profile.cloned(), faults }
        };
        Self(entries.iter().map(declared).collect())
    }
}

fn no_server(name: &str, servers: &BTreeSet<&str>) -> String {
    let meant = meant_hint(name, servers.iter().copied());
    let remedy = match meant.is_empty() {
        true => "; add the server, or remove its name here",
        false => meant.as_str(),
    };
    format!("there is no server `{name}`{remedy}")
}

#[cfg(test)]
mod tests {
    use narthex_model::{Alias, ProfileName};

    use super::*;

    fn entry(name: &str, servers: &[&str]) -> ProfileEntry {
        let mut profile = Profile::new(ProfileName::new(name).unwrap());
        let mut named = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let alias = Alias::new(server).unwrap();
            named.push((format!("mcp.profiles.{name}.servers[{index}]"), alias.clone()));
            profile.add_server(alias);
        }
        let profile = Some(Arc::new(profile));
        ProfileEntry { name: name.to_owned(), profile, servers: named, faults: Vec::new() }
    }

    /// P5: a profile with an unknown server is refused with its place and the likely name. It stays
    /// in use as it was before, and counts again once the server exists.
    #[test]
    fn p5_an_unknown_server_refuses_its_profile_alone() {
        let servers = BTreeSet::from(["github", "linear"]);
        let first = Profiles::default()
            .next(&[entry("work", &["github"]), entry("home", &["linar"])], &servers);
        let home = first.get("home").unwrap();
        assert_eq!((home.profile.is_none(), home.faults.len()), (true, 1));
        assert_eq!(
            home.faults[0].to_string(),
            "`mcp.profiles.home.servers[0]`: there is no server `linar`; did you mean `linear`?"
        );
        let work = first.get("work").unwrap().profile.clone().unwrap();
        let second = first.next(&[entry("work", &["github", "zzz"])], &servers);
        let refused = second.get("work").unwrap();
        assert!(Arc::ptr_eq(refused.profile.as_ref().unwrap(), &work));
        assert!(refused.faults[0].message.contains("add the server"), "{refused:?}");
        assert!(second.get("home").is_none());
        let more = BTreeSet::from(["github", "linear", "zzz"]);
        let third = second.next(&[entry("work", &["github", "zzz"])], &more);
        let mended = third.get("work").unwrap();
        assert!(mended.faults.is_empty() && **mended.profile.as_ref().unwrap() != *work);
        let same = third.next(&[entry("work", &["github", "zzz"])], &more);
        let (same, mended) = (same.get("work").unwrap(), mended.profile.as_ref().unwrap());
        assert!(Arc::ptr_eq(same.profile.as_ref().unwrap(), mended));
    }
}
