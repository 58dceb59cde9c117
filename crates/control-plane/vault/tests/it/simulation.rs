//! Random work on secrets and keys, stopped at every step by a seed, and started again.
//!
//! The rows check at each step that the stored ring opens all of them. This test checks that every
//! value comes out again whose write returned, and that a rotation comes to its end however often
//! it is interrupted.

use std::collections::BTreeMap;

use narthex_model::{Secret, SecretReference, SecretVersion, WorkspaceId};
use narthex_testkit::rounds;
use narthex_vault::{Put, Vault};

use crate::world::{World, name, version, workspace};

/// The generator `SplitMix64`: the same numbers for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

/// The values that must come out, by place; the last version that was given to each name.
#[derive(Default)]
struct Expected {
    values: BTreeMap<(WorkspaceId, String, u64), String>,
    last: BTreeMap<(WorkspaceId, String), u64>,
    is_rotating: bool,
}

struct Simulation {
    seed: u64,
    random: Random,
    world: World,
    expected: Expected,
    crashes: u32,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let (random, world) = (Random(seed), World::default());
        Self { seed, random, world, expected: Expected::default(), crashes: 0 }
    }

    async fn run(mut self) -> u32 {
        let mut vault = self.world.start().await.unwrap();
        for _ in 0..40 {
            if self.random.below(3) == 0 {
                let mut disk = self.world.disk();
                disk.fuse = Some(u32::try_from(self.random.below(20)).unwrap());
                disk.is_last_done = self.random.below(2) == 0;
            }
            match self.random.below(8) {
                0..4 => self.put(&vault).await,
                4 => self.clear(&vault).await,
                _ => self.rotate(&vault).await,
            }
            if self.world.disk().fuse == Some(0) {
                self.crashes += 1;
                self.world.disk().fuse = None;
                vault = self.world.start().await.unwrap();
            }
            self.world.disk().fuse = None;
            self.check(&vault).await;
        }
        let rotation = vault.rotate_key().await.unwrap();
        assert_eq!(rotation.is_resumed, self.expected.is_rotating, "seed {}", self.seed);
        let ring = self.world.disk().ring.clone().unwrap();
        assert_eq!((ring.older().count(), ring.current().id()), (0, &rotation.key));
        assert!(self.world.disk().rows.values().all(|row| row.key == rotation.key));
        self.check(&self.world.start().await.unwrap()).await;
        self.crashes
    }

    fn place(&mut self) -> (WorkspaceId, String) {
        let workspace =
            workspace(["default", "team"][usize::try_from(self.random.below(2)).unwrap()]);
        (workspace, format!("S{}", self.random.below(5)))
    }

    async fn put(&mut self, vault: &Vault) {
        let (workspace, of) = self.place();
        let value = format!("value {}", self.random.next());
        let (secret, name) = (Secret::new(value.clone()), name(&of));
        let put = Put { workspace: &workspace, name: &name, value: &secret, by: "admin" };
        let place = (workspace.clone(), of.clone());
        let next = self.expected.last.get(&place).copied().unwrap_or(0) + 1;
        let told = vault.put(put).await.ok().map(|stored| stored.version.get());
        assert!(told.is_none_or(|version| version == next), "seed {}", self.seed);
        // A caller without an answer finds either of the two.
        let stored = self.world.disk().names.get(&(workspace.clone(), name)).map(|last| last.get());
        assert!(told.is_none() || stored == told, "seed {}", self.seed);
        if stored == Some(next) {
            self.expected.last.insert(place, next);
            self.expected.values.insert((workspace, of, next), value);
        }
    }

    async fn clear(&mut self, vault: &Vault) {
        let (workspace, of) = self.place();
        let told = vault.clear(&workspace, &name(&of), "admin").await.is_ok();
        let place = (workspace.clone(), name(&of));
        let is_gone = !self.world.disk().rows.keys().any(|(at, _)| *at == place);
        assert!(!told || is_gone, "seed {}", self.seed);
        if is_gone {
            self.expected.values.retain(|(at, name, _), _| (at, name) != (&workspace, &of));
        }
    }

    async fn rotate(&mut self, vault: &Vault) {
        let before = self.keys();
        match vault.rotate_key().await {
            Ok(rotation) => {
                assert_eq!(rotation.is_resumed, before == 2, "seed {}", self.seed);
                assert_eq!(self.keys(), 1, "seed {}", self.seed);
            }
            // An interrupted rotation has added a key at most, and has not begun a second change.
            Err(_) => assert!(self.keys() <= 2, "seed {}", self.seed),
        }
    }

    fn keys(&self) -> usize {
        1 + self.world.disk().ring.as_ref().unwrap().older().count()
    }

    async fn check(&mut self, vault: &Vault) {
        self.expected.is_rotating = self.keys() > 1;
        for ((workspace, of, number), value) in &self.expected.values {
            let reference = SecretReference::pinned(name(of), version(*number));
            let opened = vault.open(workspace, &reference).await;
            let opened = opened.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
            assert_eq!(opened.value.expose(), value, "seed {}", self.seed);
        }
        let rows: Vec<SecretVersion> =
            self.world.disk().rows.keys().map(|(_, version)| *version).collect();
        assert_eq!(rows.len(), self.expected.values.len(), "seed {}", self.seed);
    }
}

#[tokio::test]
async fn x_f6_a_crash_at_any_step_loses_nothing() {
    let mut crashes = 0;
    for (seed, _) in (0..).zip(0..rounds(200)) {
        crashes += Simulation::new(seed).run().await;
    }
    assert!(crashes > 500, "only {crashes}: the simulation stops too seldom");
}
