//! Faults of a form, each of which is shown at one place.

use narthex_console::parts::Words;
use narthex_control::FieldError;

/// The faults that no field has shown yet.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<FieldError>);

impl Faults {
    pub(super) fn new(all: Vec<FieldError>) -> Self {
        Self(all)
    }

    /// Takes the faults at a place, and inside of it, as one text.
    pub(super) fn take(&mut self, place: &str) -> Option<String> {
        let is_here = |fault: &FieldError| {
            let rest = fault.field.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let (here, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.0).into_iter().partition(is_here);
        self.0 = others;
        let told: Vec<_> =
            here.iter().map(|fault| format!("{}; {}", fault.message, fault.remedy)).collect();
        (!told.is_empty()).then(|| told.join(". "))
    }

    /// True if a field that begins so has a fault.
    pub(super) fn has(&self, prefix: &str) -> bool {
        self.0.iter().any(|fault| fault.field.starts_with(prefix))
    }

    /// The faults that are left, with their places.
    pub(super) fn rest(self) -> Vec<Words> {
        self.0.iter().map(|fault| Words::new(&fault.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_shown_once() {
        let fault = |field: &str| FieldError::invalid(field, "wrong", "mend it");
        let all = ["config.key", "config.key.a", "config.key_b", "other"].map(fault).to_vec();
        let mut faults = Faults::new(all);
        assert_eq!(faults.take("config.key").unwrap(), "wrong; mend it. wrong; mend it");
        assert_eq!(faults.take("config.key"), None);
        let rest: Vec<_> = faults.rest().iter().map(ToString::to_string).collect();
        assert_eq!(rest, ["`config.key_b`: wrong; mend it", "`other`: wrong; mend it"]);
    }
}
