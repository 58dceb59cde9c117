//! The gateway against the fixture server, without any door.

#[cfg(test)]
mod arrivals;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod attached;
#[cfg(test)]
mod breadth;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod causes;
#[cfg(test)]
mod contents;
#[cfg(test)]
mod crossing;
#[cfg(test)]
mod decided;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod exposure;
#[cfg(test)]
mod fixture_process;
#[cfg(test)]
mod following;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod health;
#[cfg(test)]
mod idle_runs;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod odd_lists;
#[cfg(test)]
mod own_servers;
#[cfg(test)]
mod own_tools;
#[cfg(test)]
mod parked;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod results;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod run_end;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod shared_links;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod sign_ins;
#[cfg(test)]
mod sleeping;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod timeouts;
#[cfg(test)]
mod traffic;
#[cfg(test)]
mod world;

/// Not a test: tests start this program again by this name, as a server.
#[cfg(test)]
#[test]
fn fixture_over_stdio() {
    fixture_process::run();
}
