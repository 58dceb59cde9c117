//! Folders that become links while they are shared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use narthex_shares::ShareError;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::world::{INSIDE, World};

/// Shares `path` again and again while `door` is in turn a folder and a link out of the project.
fn share_while_swapping(path: &str, rounds: usize) {
    let world = World::new();
    world.file("door/x", INSIDE);
    world.link("trap", "../outside");
    let (door, trap) = (world.project().join("door"), world.project().join("trap"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &door, CWD, &trap, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let done = (0..rounds).try_for_each(|_| match world.take(path) {
            Ok(taken) => {
                let contents = world.contents(&taken.snapshot);
                let is_inside = contents.values().all(|content| content == INSIDE.as_bytes());
                is_inside.then_some(()).ok_or_else(|| format!("{contents:?}"))
            }
            // The path was a link at that moment, or looked like one.
            Err(ShareError::Outside { .. } | ShareError::Nothing { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        });
        // The other thread has to end before this one may fail.
        is_over.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
        assert_eq!(done, Ok(()));
    });
}

#[test]
fn x_e94_a_link_that_takes_the_place_of_a_folder_is_not_followed() {
    share_while_swapping("door/x", 2000);
}

#[test]
fn x_e94_a_link_that_takes_the_place_of_an_entry_is_not_followed() {
    share_while_swapping(".", 500);
}
