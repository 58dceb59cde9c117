//! Placeholder while this module is being written.
#[derive(Debug, Clone)]
pub struct Audit;
#[derive(Debug, Clone)]
pub struct AuditRecord;
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    Ok,
}
