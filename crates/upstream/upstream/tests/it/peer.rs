//! HTTP servers made by hand.

pub(crate) use narthex_testkit::peer::*;
