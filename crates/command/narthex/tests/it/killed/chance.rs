//! Chance that can be repeated: a seed gives the same choices again.

/// `SplitMix64`: enough for choices, and small.
pub(crate) struct Chance {
    pub(crate) seed: u64,
    state: u64,
}

impl Chance {
    /// Starts with the seed of `NARTHEX_TEST_SEED`, or a new one.
    pub(crate) fn new() -> Self {
        let given = std::env::var_os("NARTHEX_TEST_SEED");
        let seed = match given {
            Some(text) => text.to_str().unwrap().parse().unwrap(),
            None => getrandom::u64().unwrap(),
        };
        Self::of(seed)
    }

    /// Starts with this seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(limit).unwrap()).unwrap()
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { Some(&of[self.below(of.len())]) }
    }
}
