//! Reviews all outdated subjects after each change, in limited numbers and not too often.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};

/// Shortest pause between two waves: changes in between are handled together.
const PAUSE: Duration = Duration::from_millis(500);
/// Largest number of looks that are under way.
const AT_ONCE: usize = 8;

/// Looks under way, and the waiting ones.
#[derive(Debug)]
struct Waves<T> {
    looks: JoinSet<()>,
    /// Subjects of the running reviews.
    busy: HashMap<Id, T>,
    waiting: VecDeque<T>,
    /// True if a subject may be outdated.
    is_due: bool,
}

/// Reviews all subjects of `behind`, at first and whenever one of both channels has changed.
///
/// Runs as long as both channels are open. A slow review delays others only if seven more are slow.
/// `behind` must return a different subject when the data for its review has changed. No subject is
/// reviewed twice at a time; `is_same` compares two subjects without that data.
pub(crate) async fn follow<A, B, T, F>(
    (mut one, mut other): (watch::Receiver<A>, watch::Receiver<B>),
    mut behind: impl FnMut() -> Vec<T>,
    is_same: impl Fn(&T, &T) -> bool,
    look: impl Fn(T) -> F,
) where
    T: Clone + PartialEq,
    F: Future<Output = ()> + Send + 'static,
{
    let (looks, busy, waiting) = (JoinSet::new(), HashMap::new(), VecDeque::new());
    let mut waves = Waves { looks, busy, waiting, is_due: true };
    let mut next = Instant::now();
    loop {
        waves.fill(&look);
        let changed = tokio::select! {
            Some(ended) = waves.looks.join_next_with_id() => {
                waves.ended(ended);
                continue;
            }
            () = sleep_until(next), if waves.is_due => {
                next = Instant::now() + PAUSE;
                // Before the call of `behind`: changes meanwhile cause another wave.
                one.borrow_and_update();
                other.borrow_and_update();
                waves.begin(behind(), &is_same);
                continue;
            }
            changed = one.changed(), if !waves.is_due => changed,
            changed = other.changed(), if !waves.is_due => changed,
        };
        if changed.is_err() {
            return;
        }
        waves.is_due = true;
    }
}

impl<T: Clone + PartialEq> Waves<T> {
    /// Starts as many looks as there is room for.
    fn fill<F: Future<Output = ()> + Send + 'static>(&mut self, look: impl Fn(T) -> F) {
        while self.looks.len() < AT_ONCE {
            let Some(one) = self.waiting.pop_front() else { return };
            let id = self.looks.spawn(look(one.clone())).id();
            self.busy.insert(id, one);
        }
    }

    /// Queues a look at each of these, but for subjects that are being looked at unchanged.
    fn begin(&mut self, behind: Vec<T>, is_same: impl Fn(&T, &T) -> bool) {
        self.is_due = false;
        self.waiting.clear();
        for one in behind {
            match self.busy.values().find(|busy| is_same(busy, &one)) {
                // The subject is looked at again after that, with its data of that time.
                Some(busy) => self.is_due |= *busy != one,
                None => self.waiting.push_back(one),
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "the names of a server's tools could not be checked");
                error.id()
            }
        };
        self.busy.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Semaphore;

    use super::*;

    type Look = (usize, u64);

    /// The server that is looked at only when the test lets it.
    const SLOW: usize = 0;

    /// Servers, each of which was looked at with a number.
    struct World {
        numbers: Mutex<Vec<u64>>,
        news: watch::Sender<u64>,
        rows: watch::Sender<()>,
        passes: Mutex<u64>,
        under_way: Mutex<Vec<Look>>,
        most: Mutex<usize>,
        goes_on: Semaphore,
    }

    impl World {
        fn new(count: usize) -> Arc<Self> {
            let numbers = Mutex::new(vec![0; count]);
            let (news, goes_on) = (watch::Sender::new(1), Semaphore::new(0));
            let (passes, under_way, most) = Default::default();
            let rows = watch::Sender::new(());
            Arc::new(Self { numbers, news, rows, passes, under_way, most, goes_on })
        }

        async fn follow(self: Arc<Self>) {
            let (news, rows) = (self.news.subscribe(), self.rows.subscribe());
            let behind = || {
                *self.passes.lock().unwrap() += 1;
                let now = *self.news.borrow();
                let numbers = self.numbers.lock().unwrap();
                let behind = numbers.iter().enumerate().filter(|(_, number)| **number != now);
                behind.map(|(server, _)| (server, now)).collect()
            };
            let look = |(server, number): Look| {
                let world = self.clone();
                async move { world.look(server, number).await }
            };
            follow((rows, news), behind, |one, other| one.0 == other.0, look).await;
        }

        async fn look(&self, server: usize, number: u64) {
            let count = {
                let mut under_way = self.under_way.lock().unwrap();
                assert!(under_way.iter().all(|(other, _)| *other != server));
                under_way.push((server, number));
                under_way.len()
            };
            let most = *self.most.lock().unwrap();
            *self.most.lock().unwrap() = most.max(count);
            if server == SLOW {
                self.goes_on.acquire().await.unwrap().forget();
            }
            tokio::task::yield_now().await;
            self.numbers.lock().unwrap()[server] = number;
            self.under_way.lock().unwrap().retain(|(other, _)| *other != server);
            // A look's result changes a row, too.
            self.rows.send_modify(|()| ());
        }

        fn behind(&self) -> usize {
            let now = *self.news.borrow();
            self.numbers.lock().unwrap().iter().filter(|number| **number != now).count()
        }

        /// Lets time pass until nothing is under way.
        async fn rests(&self) {
            for _ in 0..100 {
                tokio::time::advance(Duration::from_millis(100)).await;
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// S24: few looks are under way at once, changes by the looks themselves cause one empty wave
    /// for all of them together, and many changes are one wave.
    #[tokio::test(start_paused = true)]
    async fn s24_waves_are_bounded() {
        let world = World::new(500);
        let mut following = JoinSet::new();
        following.spawn(world.clone().follow());
        world.goes_on.add_permits(100_000);
        world.rests().await;
        assert_eq!((world.behind(), *world.most.lock().unwrap()), (0, AT_ONCE));
        let passes = *world.passes.lock().unwrap();
        assert!(passes <= 3, "{passes} for one wave of 500 looks");
        for _ in 0..50 {
            world.news.send_modify(|number| *number += 1);
            tokio::task::yield_now().await;
        }
        world.rests().await;
        assert_eq!(world.behind(), 0);
        let more = *world.passes.lock().unwrap() - passes;
        assert!(more <= 5, "{more} for 50 changes at once");
        following.abort_all();
    }

    /// S24: a slow look holds up no other, also none with names that come later, and is repeated
    /// with these when it has ended.
    #[tokio::test(start_paused = true)]
    async fn s24_a_slow_check_of_names_delays_no_other_check() {
        let world = World::new(3);
        let mut following = JoinSet::new();
        following.spawn(world.clone().follow());
        world.rests().await;
        assert_eq!(world.behind(), 1);
        world.news.send_modify(|number| *number += 1);
        world.rests().await;
        assert_eq!(world.behind(), 1, "what came later was not looked at");
        let passes = *world.passes.lock().unwrap();
        world.goes_on.add_permits(1);
        world.rests().await;
        assert_eq!(*world.under_way.lock().unwrap(), [(SLOW, 2)]);
        world.goes_on.add_permits(1);
        world.rests().await;
        assert_eq!(world.behind(), 0);
        assert!(*world.passes.lock().unwrap() <= passes + 3, "it goes on for ever");
        following.abort_all();
    }
}
