//! Sets of servers for one owner, and references to shared connections.

use std::{collections::HashSet, sync::Arc, time::Duration};

use narthex_model::{
    Alias, AuthorizationCodeAuth, CallErrorKind, OAuth, ServerAuth, ServerDefinition, ServerState,
    Target,
};
use narthex_registry::{
    ClearedSecret, CutReason, MountIdentity, MountOptions, Mountable, OpenError, Registry, Sharing,
};
use narthex_testkit::fixture::{Options, Quirk, Running};
use narthex_upstream::Ended;
use tokio::{io::AsyncReadExt, net::unix::pipe, sync::mpsc};

use crate::world::{http, identity, in_time, program, shell, start, until_state, with_env};

fn set(definitions: impl IntoIterator<Item = ServerDefinition>) -> Vec<Mountable> {
    let mountable = |one| Mountable::new(Arc::new(one));
    definitions.into_iter().map(mountable).collect()
}

fn patient() -> MountOptions {
    MountOptions { timeout: Duration::from_secs(60), ..MountOptions::default() }
}

fn hidden(registry: &Registry) -> bool {
    registry.list().is_empty()
}

/// R-M14, R-M15: the first reference starts the server, the last one stops it.
#[tokio::test]
async fn r_m14_the_last_reference_stops_the_server() {
    let registry = start([]);
    let first = in_time(registry.mount(set([shell("x")]), &patient())).await.unwrap();
    let second = in_time(registry.mount(set([shell("x")]), &patient())).await.unwrap();
    let (one, two) = (first.get("x").unwrap(), second.get("x").unwrap());
    assert_eq!((one.id(), one.count()), (two.id(), 2));
    let link = one.found().link.clone().unwrap();
    let ended = in_time(first.unmount()).await;
    assert_eq!(ended[0].ended, None, "the other one keeps it");
    assert!(!link.closed().is_cancelled());
    assert_eq!(second.get("x").unwrap().count(), 1);
    let ended = in_time(second.unmount()).await;
    assert_eq!(ended[0].ended, Some(Ended::Gracefully));
    assert!(link.closed().is_cancelled());
    assert!(hidden(&registry), "a mounted server is hidden from other runs");
    in_time(registry.close()).await;
}

/// D12, D10: another configuration, credential or owner is another connection.
#[tokio::test]
async fn d12_a_different_configuration_credential_or_owner_is_not_shared() {
    let registry = start([shell("x")]);
    until_state(&registry, "x", ServerState::Ready).await;
    let team = |secrets: &[(&str, u64)]| MountIdentity {
        server: Some("team/docs".into()),
        secrets: secrets.iter().map(|(name, version)| ((*name).into(), *version)).collect(),
        credential: None,
    };
    let alice = MountIdentity { credential: Some("alice".into()), ..MountIdentity::default() };
    let as_it_is = || Mountable::new(Arc::new(shell("x")));
    let of = |identity| Mountable { identity: Arc::new(identity), ..as_it_is() };
    let alone = Mountable { sharing: Sharing::Only(1), ..as_it_is() };
    let all = [
        as_it_is(),
        Mountable::new(Arc::new(with_env(shell("x"), "A", "1"))),
        of(alice),
        of(team(&[])),
        of(team(&[("team/TOKEN", 1)])),
        of(team(&[("team/TOKEN", 2)])),
        alone,
    ];
    let mut sets = Vec::new();
    for one in all {
        sets.push(in_time(registry.mount(vec![one], &patient())).await.unwrap());
    }
    let ids: Vec<_> = sets.iter().map(|set| set.get("x").unwrap().id()).collect();
    assert_eq!(Some(ids[0]), registry.get("x").unwrap().connection, "the same is shared");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 7);
    let same = vec![of(team(&[("team/TOKEN", 2)]))];
    sets.push(in_time(registry.mount(same, &patient())).await.unwrap());
    assert_eq!(sets[7].get("x").unwrap().id(), ids[5]);

    // D10: only connections that hold the cleared secret end, and they stay ended.
    let secret =
        ClearedSecret { workspace: "team".into(), name: "TOKEN".into(), is_set_again: false };
    let reason = CutReason::SecretCleared(secret);
    let holds =
        |identity: &MountIdentity| identity.secrets.iter().any(|(_, version)| *version == 2);
    let link = sets[5].get("x").unwrap().found().link.clone().unwrap();
    registry.cut(&reason, holds);
    in_time(link.closed().cancelled()).await;
    for (index, set) in sets.iter().enumerate() {
        let found = set.get("x").unwrap().found();
        let kind = found.error.as_ref().map(|error| error.kind);
        let is_cut = index == 5 || index == 7;
        assert_eq!(kind, is_cut.then_some(CallErrorKind::SecretCleared), "{index}");
        assert_eq!(found.link.is_some(), !is_cut, "{index}");
    }
    // The text follows the secret; the server stays cut.
    let said = || {
        let error = sets[5].get("x").unwrap().found().error.clone().unwrap();
        error.operator_cause().to_owned()
    };
    assert!(said().contains("`narthex secrets set TOKEN --workspace team`"), "{}", said());
    registry.secret_set_again(|_identity| true);
    assert!(said().ends_with("it is set again: create a new run, which gets the new value"));
    assert!(sets[0].get("x").unwrap().found().error.is_none(), "it was never cut");
    registry.cut(&reason, holds);
    assert!(said().ends_with("has set it again"), "{}", said());
    drop(sets);
    in_time(registry.close()).await;
}

/// D12, D17, X-M14: a server to which a person must sign in is no failure of a set, and is not
/// connected. It is shared with no other caller, whatever sharing the set asks for, unless the set
/// names the owner of the credential.
#[tokio::test]
async fn x_m14_a_server_that_needs_a_sign_in_is_shared_with_no_other_caller() {
    let registry = start(Vec::new());
    let fixture = Running::http(Options::default()).await.unwrap();
    let mut definition = http("x", &fixture.url);
    let Target::Http(target) = &mut definition.target else { unreachable!() };
    let oauth = OAuth::AuthorizationCode(AuthorizationCodeAuth::default());
    target.auth = ServerAuth::OAuth(Box::new(oauth));
    let of = |credential: Option<&str>| {
        let credential = credential.map(Arc::from);
        let identity = Arc::new(MountIdentity { credential, ..MountIdentity::default() });
        Mountable { identity, ..Mountable::new(Arc::new(definition.clone())) }
    };
    let mut sets = Vec::new();
    for credential in [None, None, Some("alice"), Some("bob"), Some("alice")] {
        let set = in_time(registry.mount(vec![of(credential)], &patient())).await.unwrap();
        let found = set.get("x").unwrap().found();
        assert_eq!(found.state, ServerState::Authenticating);
        assert_eq!(found.error.as_ref().unwrap().kind, CallErrorKind::AuthUnavailable);
        assert!(found.link.is_none() && set.faults().is_empty());
        sets.push(set);
    }
    let ids: Vec<_> = sets.iter().map(|set| set.get("x").unwrap().id()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4);
    assert_eq!(ids[2], ids[4], "one credential, one connection");
    let asked = fixture.fixture.counts();
    assert_eq!(asked.initializes + asked.discovers, 0);

    // A server that is disabled is off here, too, and a mount that is released ends.
    registry.cut(&CutReason::SwitchedOff, |identity| identity.credential.as_deref() == Some("bob"));
    let error = sets[3].get("x").unwrap().found().error.clone().unwrap();
    assert_eq!(error.kind, CallErrorKind::ServerDisabled);
    let told = error.operator_cause();
    assert!(told.ends_with("create a new run once it is enabled"), "{told}");
    for set in sets {
        in_time(set.unmount()).await;
    }
    in_time(registry.close()).await;
}

/// R-E5: a stale reference to a failed and replaced connection does not end its successor.
#[tokio::test]
async fn r_e5_a_stale_reference_does_not_end_a_newer_mount() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mkdir {} && exit 3; {}",
        folder.path().join("started").display(),
        crate::world::shell_script()
    );
    let server = || set([program("x", "sh", &["-c", &script])]);
    let registry = start([]);
    let tolerant = MountOptions { is_strict: false, ..patient() };
    let stale = in_time(registry.mount(server(), &tolerant)).await.unwrap();
    assert_eq!(stale.faults().len(), 1);
    let live = in_time(registry.mount(server(), &tolerant)).await.unwrap();
    drop(stale);
    let again = in_time(registry.mount(server(), &tolerant)).await.unwrap();
    assert_eq!(live.get("x").unwrap().id(), again.get("x").unwrap().id());
    assert_eq!(again.get("x").unwrap().found().state, ServerState::Ready);
    in_time(registry.close()).await;
}

/// R-M12: after one failure no mount is left, and no process either.
#[tokio::test]
async fn r_m12_a_strict_set_is_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Each live process holds the pipe open.
    let script = format!("exec 3> {}; {}", fifo.display(), crate::world::shell_script());
    let good = program("good", "sh", &["-c", &script]);
    let bad = program("bad", "no-such-program-here", &[]);
    let registry = start([]);
    let file = tokio::task::spawn_blocking(move || fs_err::File::open(fifo).unwrap());
    let error = in_time(registry.mount(set([good, bad]), &patient())).await.unwrap_err();
    assert_eq!(error.faults.len(), 1);
    assert_eq!(error.faults[0].alias, Alias::new("bad").unwrap());
    let text = error.to_string();
    assert!(text.starts_with("no server was mounted: server `bad`: "), "{text}");
    let (file, _path) = in_time(file).await.unwrap().into_parts();
    let mut pipe = pipe::Receiver::from_file(file).unwrap();
    assert_eq!(in_time(pipe.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    in_time(registry.close()).await;
}

/// D17, R-D5, R-E1, R-E28: an optional server may fail; a tolerant set is mounted in any case.
#[tokio::test]
async fn d17_optional_servers_may_fail() {
    let registry = start([]);
    let mut with_optional = set([shell("x"), program("bad", "no-such-program", &[])]);
    with_optional[1].is_optional = true;
    let mounted = in_time(registry.mount(with_optional, &patient())).await.unwrap();
    assert_eq!(mounted.mounts().len(), 1);
    assert_eq!(mounted.faults()[0].error.kind, CallErrorKind::TransportError);
    let twice = in_time(registry.mount(set([shell("y"), shell("y")]), &patient())).await;
    assert!(twice.unwrap_err().to_string().contains("this alias"), "R-E1");
    in_time(registry.close()).await;
}

/// D10: a server that is disabled runs for no caller: it is not mounted, and present mounts
/// end.
#[tokio::test]
async fn d10_a_server_that_is_switched_off_is_not_mounted() {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let script = format!("mkdir {}; {}", started.display(), crate::world::shell_script());
    let other = || program("other", "sh", &["-c", &script]);
    let registry = start([shell("x")]);
    let alone = |definitions: Vec<ServerDefinition>| {
        let only = |one| Mountable { sharing: Sharing::Only(1), ..one };
        set(definitions).into_iter().map(only).collect::<Vec<_>>()
    };
    let mounted = in_time(registry.mount(alone(vec![shell("x")]), &patient())).await.unwrap();
    let link = mounted.get("x").unwrap().found().link.clone().unwrap();
    registry.disable("x").unwrap();
    in_time(link.closed().cancelled()).await;
    let both = || alone(vec![other(), with_env(shell("x"), "A", "1")]);
    let error = in_time(registry.mount(both(), &patient())).await.unwrap_err();
    assert_eq!(error.faults.len(), 1);
    assert_eq!(error.faults[0].error.kind, CallErrorKind::ServerDisabled);
    assert!(error.to_string().contains("`x`: ") && error.to_string().contains("disabled"));
    assert!(!started.exists(), "nothing of the set was started");
    let mut optional = both();
    optional[1].is_optional = true;
    let mounted = in_time(registry.mount(optional, &patient())).await.unwrap();
    assert_eq!((mounted.mounts().len(), mounted.faults().len()), (1, 1));
    assert!(started.exists());
    assert!(in_time(registry.enable("x").unwrap().result()).await.is_ready());
    assert!(in_time(registry.mount(alone(vec![shell("x")]), &patient())).await.is_ok());
    let off = ServerDefinition { is_disabled: true, ..shell("y") };
    let error = in_time(registry.mount(alone(vec![off]), &patient())).await.unwrap_err();
    assert_eq!(error.faults[0].error.kind, CallErrorKind::ServerDisabled, "by its own entry");
    in_time(registry.close()).await;
}

/// R-M9, R-M13, R-E2, R-D8: both servers get a request before either has answered.
#[tokio::test]
async fn r_m9_a_set_connects_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = |name: &str, other: &str| {
        let path = |name| folder.path().join(name).display().to_string();
        // Each process signals the other that it runs, and answers only after the other's signal.
        let script = format!(
            "exec 4<>{} 5<>{}; echo up >&5; read -r _ <&4; {}",
            path(name),
            path(other),
            crate::world::shell_script()
        );
        program(name, "sh", &["-c", &script])
    };
    for name in ["a", "b"] {
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status();
        assert!(made.unwrap().success());
    }
    let registry = start([]);
    let servers = [server("a", "b"), server("b", "a")];
    let mounted = in_time(registry.mount(set(servers), &patient())).await.unwrap();
    assert_eq!(mounted.mounts().len(), 2);
    in_time(registry.close()).await;
}

/// R-M10, R-M11, E75, R-E28: a server that hangs is given up after its own deadline.
#[tokio::test]
async fn r_m11_a_mount_of_a_hanging_server_fails_at_its_deadline() {
    let hang = Options { quirks: vec![Quirk::HangList], ..Options::default() };
    let hanging = Running::http(hang).await.unwrap();
    let registry = start([]);
    let quick = MountOptions { timeout: Duration::from_millis(500), ..MountOptions::default() };
    let error = in_time(registry.mount(set([http("x", &hanging.url)]), &quick)).await.unwrap_err();
    assert_eq!(error.faults[0].error.kind, CallErrorKind::Timeout);
    assert_eq!(MountOptions::default().timeout, Duration::from_secs(5));
    in_time(registry.close()).await;
}

/// D12: the number of a server's processes is limited.
#[tokio::test]
async fn d12_processes_of_a_server_are_limited() {
    let options = narthex_registry::RegistryOptions {
        children_max: 3,
        ..narthex_registry::RegistryOptions::new(
            identity(),
            narthex_supervisor::BaseEnvironment::from_process(),
        )
    };
    let registry = Registry::new(options).unwrap();
    let entry = narthex_registry::config::Entry::Server(shell("x"));
    assert!(in_time(registry.add_server(entry)).await.unwrap().is_ready());
    let x = Alias::new("x").unwrap();
    let open = || {
        let (events, received) = mpsc::channel(8);
        let registry = registry.clone();
        let x = x.clone();
        async move {
            let opened = registry.open_link(&x, identity(), None, events).await;
            opened.map(|link| (link, received))
        }
    };
    let (first, _events) = in_time(open()).await.unwrap();
    let (_second, _events) = in_time(open()).await.unwrap();
    let refused = in_time(open()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Full(3)), "{refused:?}");
    first.stop().await;
    let (_third, _events) = in_time(open()).await.unwrap();
    in_time(registry.close()).await;
}

/// R-M12, E40: a modern server that was removed while it had not listed yet ends, although it was
/// asked to announce changes.
#[tokio::test]
async fn e40_a_removed_server_ends_even_while_listing() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let found = concat!(
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"#,
        r#""capabilities":{"tools":{}}}"#
    );
    // Each live process holds the pipe open; only the first request is answered.
    let script = format!(
        r#"exec 3> {}; while read -r line; do
        id=${{line#*'"id":'}}; id=${{id%%[,\}}]*}}; case "$line" in
        *server/discover*) printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" '{found}';;
        esac; done"#,
        fifo.display()
    );
    let registry = start([program("x", "sh", &["-c", &script])]);
    let file = tokio::task::spawn_blocking(move || fs_err::File::open(fifo).unwrap());
    let mut changes = registry.changes();
    in_time(async {
        while registry.get("x").unwrap().activity != Some("listing") {
            changes.changed().await.unwrap();
        }
    })
    .await;
    registry.disable("x").unwrap();
    let (file, _path) = in_time(file).await.unwrap().into_parts();
    let mut pipe = pipe::Receiver::from_file(file).unwrap();
    assert_eq!(in_time(pipe.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    in_time(registry.close()).await;
}
