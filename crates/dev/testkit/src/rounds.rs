//! Number of rounds that simulations, properties and fuzz targets run.
//!
//! A plain test run takes the few that each test names. `cargo xtask soak` multiplies them.

/// Multiplies the rounds of every test that asks [`rounds`].
pub const VARIABLE: &str = "NARTHEX_TEST_ROUNDS";

/// Gives `few`, times the whole number in [`VARIABLE`] if that is set.
///
/// # Panics
/// If the variable holds anything but a whole number from 1 on.
#[must_use]
pub fn rounds(few: usize) -> usize {
    let Some(times) = std::env::var_os(VARIABLE) else { return few };
    let times =
        times.to_str().and_then(|times| times.parse::<usize>().ok()).filter(|times| *times > 0);
    few * times.unwrap_or_else(|| panic!("{VARIABLE} must be a whole number from 1 on"))
}
