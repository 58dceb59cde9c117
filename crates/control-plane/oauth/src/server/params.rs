//! Parameters of a query or a form, each of which may be given once.

use narthex_model::Secret;
use url::form_urlencoded;

/// The longest query or form, in bytes.
pub const PARAMS_MAX: usize = 64 * 1024;
/// Parameters that may be given more than once (RFC 8707, 2; RFC 8693, 2.1).
const REPEATABLE: [&str; 2] = ["resource", "audience"];

/// The parameters of a request. Their values may be secrets, and are not printed.
#[derive(Debug, Clone, Default)]
pub struct Params(Vec<Param>);

#[derive(Debug, Clone)]
struct Param {
    name: String,
    value: Secret,
}

/// The reason why parameters cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// The text has more than 64 KiB.
    #[error("the request is larger than 64 KiB")]
    TooLong,
    /// A parameter is given twice, so that its value is ambiguous (RFC 6749, 3.1).
    #[error("a parameter is given more than once")]
    Repeated,
}

impl Params {
    /// Reads `application/x-www-form-urlencoded`.
    ///
    /// # Errors
    /// When the text is too long, or a parameter that may be given once is given twice.
    pub fn parse(text: &[u8]) -> Result<Self, ParamsError> {
        if text.len() > PARAMS_MAX {
            return Err(ParamsError::TooLong);
        }
        let mut params: Vec<Param> = Vec::new();
        for (name, value) in form_urlencoded::parse(text) {
            let is_known = params.iter().any(|param| param.name == *name);
            if is_known && !REPEATABLE.contains(&&*name) {
                return Err(ParamsError::Repeated);
            }
            params.push(Param { name: name.into_owned(), value: Secret::new(value) });
        }
        Ok(Self(params))
    }

    /// The value of a parameter. One without a value counts as missing (RFC 6749, 3.1).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The values of a parameter that may be given more than once.
    pub fn all<'p>(&'p self, name: &str) -> impl Iterator<Item = &'p str> {
        let named = self.0.iter().filter(move |param| param.name == name);
        named.map(|param| param.value.expose()).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_once() {
        let params = Params::parse(b"a=1&b=&c=x%20y+z&resource=r&resource=s").unwrap();
        assert_eq!((params.get("a"), params.get("b")), (Some("1"), None));
        assert_eq!(params.get("c"), Some("x y z"));
        assert_eq!(params.all("resource").collect::<Vec<_>>(), ["r", "s"]);
        assert_eq!(Params::parse(b"a=1&a=1").unwrap_err(), ParamsError::Repeated);
        let long = "a".repeat(PARAMS_MAX + 1);
        assert_eq!(Params::parse(long.as_bytes()).unwrap_err(), ParamsError::TooLong);
        assert!(!format!("{:?}", Params::parse(b"code=hunter2")).contains("hunter2"));
    }
}
