//! Random orders of all events of a registry, against a model of it.
//!
//! After each step the rows, their order, and the names that are disabled must be those of the
//! model. At quiet points, so must the states, the tools, and the sessions and processes that are
//! open at the servers. A failure names its seed; `NARTHEX_TEST_SEED=…` runs that seed alone.

mod model;
mod servers;
mod steps;

use narthex_testkit::rounds;

use self::steps::Simulation;

/// The number of steps of each seed.
const STEPS: u32 = 2500;

/// Simulates a seed, and for longer runs every fourth seed after it.
async fn simulate(first: u64) {
    let named = std::env::var_os("NARTHEX_TEST_SEED");
    let named = named.map(|text| text.to_str().and_then(|text| text.parse().ok()));
    if let Some(seed) = named {
        return simulate_one(seed.expect("NARTHEX_TEST_SEED is a number")).await;
    }
    for (seed, _) in (first..).step_by(4).zip(0..rounds(1)) {
        println!("NARTHEX_TEST_SEED={seed}");
        simulate_one(seed).await;
    }
}

async fn simulate_one(seed: u64) {
    let mut simulation = Simulation::new(seed).await;
    for _ in 0..STEPS {
        simulation.step().await;
    }
    simulation.end().await;
}

/// E2, E32, E40, E41, E55, E57, E128, R-M14, E4: see above. Each of the four tests has another
/// seed, and two of them use more than one thread.
#[tokio::test]
async fn e128_any_order_of_verbs_matches_the_model_1() {
    simulate(1).await;
}

#[tokio::test]
async fn e128_any_order_of_verbs_matches_the_model_2() {
    simulate(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e128_any_order_of_verbs_matches_the_model_3() {
    simulate(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e128_any_order_of_verbs_matches_the_model_4() {
    simulate(4).await;
}
