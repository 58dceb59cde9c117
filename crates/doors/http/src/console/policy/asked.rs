//! The ruling on a call, which is not made.

use narthex_control::{ControlError, RulesChecked};
use narthex_wire::Raw;

use crate::console::viewer::Viewer;

/// The ruling on a question, by the function of the API.
pub(super) async fn decided(
    viewer: &Viewer<'_>,
    question: &str,
) -> Result<RulesChecked, ControlError> {
    let gateway = &viewer.door.gateway;
    let as_ruled = |tool: &str, written: &[u8]| gateway.built_in_as_ruled(tool, Raw::new(written));
    viewer.control().rules_check(&viewer.workspace, question.as_bytes(), as_ruled).await
}
