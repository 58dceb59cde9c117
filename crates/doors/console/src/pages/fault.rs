//! The pages for a request that was refused or has failed.

use askama::Template;

use crate::{Frame, assets, filters, parts::Words};

/// A refusal or a failure.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The kind, as in the API.
    pub kind: &'static str,
    /// The reason, with its remedy.
    pub sentence: Words,
}

/// The page within the frame of a workspace.
#[derive(Debug, Template)]
#[template(path = "fault.html")]
pub struct FaultPage {
    /// The frame.
    pub frame: Frame,
    /// The failure.
    pub fault: Fault,
}

/// The page where no workspace is open.
#[derive(Debug, Template)]
#[template(path = "bare_fault.html")]
pub struct BareFaultPage {
    /// The failure.
    pub fault: Fault,
}

/// The failure as a part of an open page.
#[derive(Debug, Template)]
#[template(path = "parts/fault_told.html")]
pub struct FaultPart {
    /// The failure.
    pub fault: Fault,
}

impl BareFaultPage {
    fn style(&self) -> &'static str {
        assets::style()
    }

    fn mark(&self) -> &'static str {
        assets::mark()
    }
}
