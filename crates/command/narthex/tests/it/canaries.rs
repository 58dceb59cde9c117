//! S27: values that are planted everywhere, and a search for them in all that the daemon, its
//! children and the commands print and leave behind.

mod fuzz;
mod tokens;
mod use_all;
mod ways_in;
mod world;

use std::collections::BTreeSet;

use fs_err as fs;

use narthex_testkit::canary::Canary;

use self::world::World;
use crate::support::descendants;

/// The channels. Each of them is known to show values that are not secret.
const CHANNELS: [&str; 8] =
    ["answer ", "command ", "log", "file ", "name ", "environ ", "line ", "trace"];

/// S27, X-E118, X-E121, X-M4, X-E16, X-M31, X-M64, A-10: with every request and every failure, a
/// secret is in the one server that declares it, and in the two answers that must have it.
#[test]
fn s27_secrets_reach_only_their_server_and_the_two_required_answers() {
    let mut world = World::start();
    world.set_up();
    let mut canaries = world.canaries();
    world.use_everything(&mut canaries);
    let planted = world.planted();
    world.note_processes();
    world.note_files("while it runs");
    core_dumps_are_off(&world);
    world.stop();
    world.note_files("at the end");
    canaries.extend(world.tokens());
    let everything = &world.everything;
    // An empty finding must mean something: a name that is no secret is in each channel.
    let found = everything.finds(&planted);
    for channel in CHANNELS {
        assert!(found.iter().any(|(label, _)| label.starts_with(channel)), "{channel}: {found:?}");
    }
    // Each of these is held by one process, which is the server that declares it.
    for name in ["CANARY_ENV_TOKEN", "CANARY_ARG_TOKEN"] {
        let canary = canaries.iter().find(|canary| canary.name == name).unwrap();
        let found = everything.finds(canary);
        let holders = found.iter().filter(|(label, _)| label.contains(" of server "));
        assert_eq!(holders.count(), 1, "{name}: {found:?}");
    }
    // And these answers must have values.
    for (name, place) in [
        ("STDIO", "environ of server stdio"),
        ("LOCAL", "environ of server local"),
        ("STDIO", "answer in direct mode"),
        ("HTTP", "answer in direct mode"),
        ("BOUND", "answer that begins a run"),
    ] {
        let canary = canaries.iter().find(|canary| canary.name == name).unwrap();
        let found = everything.finds(canary);
        assert!(found.iter().any(|(label, _)| label.starts_with(place)), "{name}: {found:?}");
    }
    let leaks: BTreeSet<_> = everything.leaks(&canaries).into_iter().collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// A crash leaves no memory on a disk: neither the daemon's, nor that of a shim or a server.
fn core_dumps_are_off(world: &World) {
    let daemon = world.daemon();
    let mut processes = descendants(daemon);
    assert!(processes.len() >= 4, "{processes:?}");
    processes.push(daemon);
    for process in processes {
        // The process may have ended meanwhile.
        let Ok(limits) = fs::read_to_string(format!("/proc/{process}/limits")) else { continue };
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        let soft = line.split_whitespace().nth(4).unwrap();
        // With a limit of one byte no file is written, and no program gets the dump; with 0 a
        // program could get it.
        assert!(["0", "1"].contains(&soft), "{process}: {line}");
    }
}

/// In the environment that the daemon is started with, where only the server that names it may get
/// it from.
fn of_the_daemons_environment(name: &'static str) -> Canary {
    let canary = Canary::new(name).allowed_in("environ of the daemon");
    match name {
        "CANARY_ENV_TOKEN" => canary.allowed_in("environ of server env"),
        "CANARY_ARG_TOKEN" => canary.allowed_in("line of server argument"),
        "CATALOG_URL_TOKEN" => canary.allowed_in("answer in direct mode"),
        _ => canary,
    }
}
