//! Stored values come back, also after closing.

use std::time::{Duration, SystemTime};

use narthex_model::{ErrorKind, OauthOnOrchestrators, WorkspaceId};
use narthex_store::{CallCount, Store, Workspace, WorkspaceChange, WorkspaceCounts};
use tokio::task::JoinSet;

use crate::support::{Place, id, set};

/// Texts that a careless store would mix up, cut or fold.
const NAMES: [&str; 8] =
    ["git", "GIT", "größe", "gro\u{308}ße", "数据库", "🦀", "'; DROP TABLE server_flags; --", ""];

#[tokio::test]
async fn the_default_workspace_exists_from_the_start() {
    for place in Place::both() {
        let store = place.open().await;
        let default = Workspace::new(id("default"), "Default");
        assert_eq!(store.workspaces().find(&id("default")).await.unwrap(), Some(default.clone()));
        assert_eq!(store.workspaces().all().await.unwrap(), vec![default]);
        assert_eq!(id("default"), WorkspaceId::default());
    }
}

#[tokio::test]
async fn workspaces_keep_their_names_and_have_unique_ids() {
    for place in Place::both() {
        let store = place.open().await;
        let team = Workspace::new(id("team-1"), "Größe 数 🦀");
        store.workspaces().create(&team).await.unwrap();
        let again = store.workspaces().create(&team).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict);
        store.close().await;
        let store = place.open().await;
        assert_eq!(store.workspaces().find(&id("team-1")).await.unwrap(), Some(team));
        assert_eq!(store.workspaces().find(&id("team-2")).await.unwrap(), None);
        assert_eq!(store.workspaces().all().await.unwrap().len(), 2);
    }
}

/// The numbers of all workspaces come with one statement, and a workspace without objects has none.
#[tokio::test]
async fn workspaces_are_counted_together() {
    for place in Place::both() {
        let store = place.open().await;
        store.workspaces().create(&Workspace::new(id("team"), "Team")).await.unwrap();
        assert!(store.workspaces().counts(7).await.unwrap().is_empty());
        let calls = |day, kind: &str, calls| CallCount {
            workspace: id("team"),
            day,
            kind: kind.to_owned(),
            name: "team".to_owned(),
            calls,
        };
        let all = [calls(7, "workspace", 5), calls(7, "server", 3), calls(6, "workspace", 9)];
        store.traffic().add(&all).await.unwrap();
        let counts = store.workspaces().counts(7).await.unwrap();
        let team = WorkspaceCounts { calls: 5, ..WorkspaceCounts::default() };
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(id("team"), team)]);
        assert!(["SQLite", "PostgreSQL"].contains(&store.engine()));
        assert!(store.schema_version() > 40);
    }
}

fn contents(is_on: bool) -> WorkspaceChange {
    WorkspaceChange { audits_contents: Some(is_on), ..WorkspaceChange::default() }
}

fn renamed(name: &str) -> WorkspaceChange {
    WorkspaceChange { name: Some(name.to_owned()), ..WorkspaceChange::default() }
}

/// X-E31: the setting is `off` until an admin changes it, and keeps that value; no other change
/// touches it.
#[tokio::test]
async fn x_e31_oauth_on_orchestrators_is_stored() {
    for place in Place::both() {
        let store = place.open().await;
        let mut team = Workspace::new(id("team"), "Team");
        team.settings.oauth_on_orchestrators = OauthOnOrchestrators::On;
        store.workspaces().create(&team).await.unwrap();
        let home = id("default");
        let now = async |store: &Store, of: &WorkspaceId| {
            let found = store.workspaces().find(of).await.unwrap().unwrap();
            found.settings.oauth_on_orchestrators
        };
        assert_eq!(now(&store, &home).await, OauthOnOrchestrators::Off);
        let attended = WorkspaceChange {
            oauth_on_orchestrators: Some(OauthOnOrchestrators::OnAttended),
            ..contents(true)
        };
        assert!(store.workspaces().change(&home, &attended).await.unwrap());
        assert!(store.workspaces().change(&home, &renamed("Home")).await.unwrap());
        assert!(!store.workspaces().change(&id("nosuch"), &attended).await.unwrap());
        store.close().await;
        let store = place.open().await;
        assert_eq!(now(&store, &home).await, OauthOnOrchestrators::OnAttended);
        assert_eq!(now(&store, &id("team")).await, OauthOnOrchestrators::On);
        let found = store.workspaces().find(&home).await.unwrap().unwrap();
        assert!(found.settings.audits_contents && found.name == "Home");
    }
}

/// X-M64: fields that a change leaves out stay as they are, also over restarts.
#[tokio::test]
async fn x_m64_audit_contents_and_the_name_of_a_workspace_change_apart() {
    for place in Place::both() {
        let store = place.open().await;
        let home = id("default");
        assert!(store.workspaces().change(&home, &contents(true)).await.unwrap());
        assert!(store.workspaces().change(&home, &renamed("Home")).await.unwrap());
        assert!(!store.workspaces().change(&id("nosuch"), &contents(true)).await.unwrap());
        store.close().await;
        let store = place.open().await;
        let mut all = store.workspaces().all().await.unwrap();
        let found = all.pop().unwrap();
        assert_eq!((&*found.name, found.settings.audits_contents, all.len()), ("Home", true, 0));
        assert!(store.workspaces().change(&home, &contents(false)).await.unwrap());
        assert!(!store.workspaces().find(&home).await.unwrap().unwrap().settings.audits_contents);
    }
}

/// E57: a server that was disabled stays so across restarts, in its own workspace.
#[tokio::test]
async fn e57_disabled_servers_stay_disabled_after_a_restart() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, there) = (id("default"), id("other"));
        let other = Workspace::new(there.clone(), "");
        store.workspaces().create(&other).await.unwrap();
        for name in NAMES {
            store.server_flags().set_disabled(&here, name, true).await.unwrap();
        }
        store.server_flags().set_disabled(&here, "on", false).await.unwrap();
        store.close().await;

        let store = place.open().await;
        let flags = store.server_flags();
        assert_eq!(flags.disabled(&here).await.unwrap(), set(NAMES));
        assert_eq!(flags.disabled(&there).await.unwrap(), set([""; 0]));
        for name in &NAMES[1..] {
            flags.set_disabled(&here, name, false).await.unwrap();
        }
        assert_eq!(flags.disabled(&here).await.unwrap(), set(["git"]));
        flags.forget(&here, "git").await.unwrap();
        assert_eq!(flags.disabled(&here).await.unwrap(), set([""; 0]));
    }
}

/// Saying the same again does not make it newer.
#[tokio::test]
async fn a_flag_records_the_time_of_its_last_change() {
    for place in Place::both() {
        let store = place.open().await;
        store.server_flags().set_disabled(&id("default"), "git", true).await.unwrap();
        place.sql("UPDATE server_flags SET changed_at = 7").await;
        let changed_at = "SELECT CAST(changed_at AS TEXT) FROM server_flags";
        store.server_flags().set_disabled(&id("default"), "git", true).await.unwrap();
        assert_eq!(place.sql(changed_at).await, ["7"]);
        store.server_flags().set_disabled(&id("default"), "git", false).await.unwrap();
        assert_ne!(place.sql(changed_at).await, ["7"]);
    }
}

#[tokio::test]
async fn flags_need_a_workspace_and_are_removed_with_their_workspace() {
    for place in Place::both() {
        let store = place.open().await;
        let flags = store.server_flags();
        let error = flags.set_disabled(&id("nosuch"), "git", true).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = store.seeded_defaults().mark(&id("nosuch"), ["git"]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        flags.set_disabled(&id("default"), "git", true).await.unwrap();
        place.sql("DELETE FROM workspaces").await;
        assert_eq!(flags.disabled(&id("default")).await.unwrap(), set([""; 0]));
    }
}

/// E146: a default is seeded once per name, and later ones still arrive.
#[tokio::test]
async fn e146_defaults_are_remembered_by_name() {
    for place in Place::both() {
        let store = place.open().await;
        let seeded = store.seeded_defaults();
        assert_eq!(seeded.names(&id("default")).await.unwrap(), set([""; 0]));
        seeded.mark(&id("default"), NAMES).await.unwrap();
        seeded.mark(&id("default"), ["git", "later"]).await.unwrap();
        seeded.mark(&id("default"), []).await.unwrap();
        store.close().await;
        let store = place.open().await;
        let names = store.seeded_defaults().names(&id("default")).await.unwrap();
        assert_eq!(names, set(NAMES.into_iter().chain(["later"])));
    }
}

/// D27: approval is for one content at one place.
#[tokio::test]
async fn d27_a_place_has_one_approved_content() {
    for place in Place::both() {
        let store = place.open().await;
        let before = SystemTime::now() - Duration::from_secs(1);
        for (at, hash) in [("/a/mcp.json", "01"), ("/ä/mcp.json", "02"), ("/a/mcp.json", "03")] {
            store.trusted_files().approve(at, hash).await.unwrap();
        }
        let approved = store.trusted_files().find("/a/mcp.json").await.unwrap().unwrap();
        assert_eq!(approved.sha256, "03");
        assert!(approved.approved_at > before && approved.approved_at <= SystemTime::now());
        let other = store.trusted_files().find("/ä/mcp.json").await.unwrap().unwrap();
        assert_eq!(other.sha256, "02");
        assert_eq!(store.trusted_files().find("/A/mcp.json").await.unwrap(), None);
    }
}

#[tokio::test]
async fn ten_thousand_rows_are_stored_and_read() {
    for place in Place::both() {
        let store = place.open().await;
        let names: Vec<String> = (0..10_000).map(|n| format!("server-{n}")).collect();
        let all = || names.iter().map(String::as_str);
        store.seeded_defaults().mark(&id("default"), all()).await.unwrap();
        assert_eq!(store.seeded_defaults().names(&id("default")).await.unwrap(), set(all()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_can_share_a_store() {
    for place in Place::both() {
        let store = place.open().await;
        let mut tasks = JoinSet::new();
        for number in 0..64 {
            let store = store.clone();
            tasks.spawn(async move {
                let name = format!("server-{number}");
                store.server_flags().set_disabled(&id("default"), &name, true).await.unwrap();
                // A writer reads its own writes.
                assert!(
                    store.server_flags().disabled(&id("default")).await.unwrap().contains(&name)
                );
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        assert_eq!(store.server_flags().disabled(&id("default")).await.unwrap().len(), 64);
    }
}
