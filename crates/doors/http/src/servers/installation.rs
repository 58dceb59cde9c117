//! The whole installation, for operators: the daemon, the use of workspaces, and the master keys.

use narthex_control::{Installation, MasterKeyFacts, WorkspaceUse as Used};

use super::{Answered, Asked, ok};
use crate::{
    daemon,
    routes::InstallationTarget,
    shapes::{MasterKey, MasterKeys, WorkspaceUse},
};

impl Asked<'_> {
    pub(super) async fn of_installation(&self, of: InstallationTarget) -> Answered {
        match of {
            InstallationTarget::Daemon => self.daemon(),
            InstallationTarget::WorkspaceUses => self.workspace_uses().await,
            InstallationTarget::MasterKeys => self.master_keys().await,
        }
    }

    fn daemon(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(&daemon::facts(self.door)))
    }

    async fn workspace_uses(&self) -> Answered {
        self.query(&["after", "limit"])?;
        let all = Installation::of(self.control()?).workspace_uses().await?;
        self.page(all, |one| one.id.as_str(), used)
    }

    async fn master_keys(&self) -> Answered {
        self.query(&[])?;
        let narthex_control::MasterKeys { place, is_ours, keys } =
            Installation::of(self.control()?).master_keys().await?;
        let keys = keys.into_iter().map(key).collect();
        Ok(ok(&MasterKeys { place, is_ours, keys }))
    }
}

fn used(one: &Used) -> WorkspaceUse {
    let Used { id, name, members, servers, file_servers, runs, calls } = one;
    WorkspaceUse {
        id: id.into(),
        name: name.clone(),
        members: *members,
        servers: *servers,
        file_servers: *file_servers,
        runs: *runs,
        calls: *calls,
    }
}

fn key(facts: MasterKeyFacts) -> MasterKey {
    let MasterKeyFacts { id, is_current, values, made_at } = facts;
    let id = id.as_str().to_owned();
    MasterKey { id, is_current, values, made_at: made_at.map(Into::into) }
}
