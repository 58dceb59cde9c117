//! The crate tests of signing in: one binary.

#[cfg(test)]
mod oidc;
#[cfg(test)]
mod passkeys;
#[cfg(test)]
mod provider;
