//! Faults of one entry: each has its own message with the remedy in it, and a code for programs.

use narthex_model::{
    AliasError, AuthErrorFault, ConfinementProblem, CredentialAddressFault, LimitProblem,
    NameError, NotificationNameError, UnknownKey,
};

use super::placeholder::PlaceholderError;

/// The problem at one place of an entry. Never holds a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EntryProblem {
    #[error("expected an object, found {found}; write `{{\"transport\": …}}`")]
    NotAnObject { found: &'static str },
    #[error(transparent)]
    BadName(#[from] AliasError),
    #[error(transparent)]
    BadScope(NameError),
    #[error("another server becomes `{alias}` as well; rename one of the two")]
    SameAlias { alias: String },
    #[error("the transport is missing; add `\"transport\": \"{meant}\"`")]
    NoTransport { meant: &'static str },
    #[error("unknown transport `{found}`; use `stdio`, `http` or `sse`")]
    UnknownTransport { found: String },
    #[error("neither a command nor a url; give `command` to start a program, `url` to call one")]
    NoTarget,
    #[error("both a command and a url; keep one, or choose one with `transport`")]
    TwoTargets,
    #[error("the url is missing; an http server needs one, starting with `https://` or `http://`")]
    NoUrl,
    #[error("the url cannot be used: {reason}; write one starting with `https://` or `http://`")]
    BadUrl { reason: &'static str },
    #[error("the command is missing; a stdio server needs the program to start")]
    NoCommand,
    #[error("expected {wanted}, found {found}; write {wanted}")]
    WrongType { found: &'static str, wanted: &'static str },
    #[error("`{found}` is not a duration; write a number with its unit, such as `500ms` or `30s`")]
    BadDuration { found: String },
    #[error("unknown choice `{found}`; use `quarantine` or `warn`")]
    UnknownOnFlagged { found: String },
    #[error(
        "`{key}` is not known here; did you mean `{known}`? narthex does not ignore a key that may \
         restrict a server"
    )]
    UnknownRestriction { key: String, known: String },
    #[error("the tools that are shown are listed twice; keep one of the lists")]
    AllowTwice,
    #[error("{0}")]
    UnknownKey(UnknownKey),
    #[error("the text holds a NUL character; remove it")]
    Nul,
    #[error(
        "`{name}` is not a name of an environment variable; it must not be empty or have a `=`"
    )]
    BadEnvName { name: String },
    #[error("`{name}` is not a name of an HTTP header; use letters, digits and `-`")]
    BadHeaderName { name: String },
    #[error(
        "the value cannot be sent in an HTTP header; use printable ASCII without line breaks \
         (a variable filled from a file often ends in one)"
    )]
    BadHeaderValue,
    #[error("the header `{name}` is set twice; keep one of the two")]
    HeaderTwice { name: String },
    #[error("`{key}` is not supported; write the value as `{instead}` with `${{env:NAME}}`")]
    Reference { key: &'static str, instead: &'static str },
    #[error("the mode is missing; add `\"mode\"` with one of {AUTH_MODES}")]
    NoAuthMode,
    #[error("unknown auth mode `{found}`; use one of {AUTH_MODES}")]
    UnknownAuthMode { found: String },
    #[error("`{key}` is missing; the auth mode `{mode}` needs it")]
    NoAuthField { key: &'static str, mode: &'static str },
    #[error(
        "`clientSecret` is missing; the auth mode `clientCredentials` needs it, or a `privateKey`"
    )]
    NoClientProof,
    #[error("the identity of a person is missing; add `idToken`, `refreshToken` or both")]
    NoIdentity,
    #[error(
        "a server of a file belongs to no human; give `idToken` or `refreshToken` here, or put the \
         server into the catalog, where each human has their own sign-in"
    )]
    ProviderOfCatalog,
    #[error("this is no private key in PEM, which begins with `-----BEGIN PRIVATE KEY-----`")]
    BadPrivateKey,
    #[error("unknown choice `{found}`; use one of {known}")]
    UnknownChoice { found: String, known: String },
    #[error("`{key}` and `{other}` exclude each other; keep one of the two")]
    FieldsExclude { key: &'static str, other: &'static str },
    #[error("`{key}` needs `{needs}`, which is missing; add `{needs}`, or remove `{key}`")]
    FieldNeeds { key: &'static str, needs: &'static str },
    #[error("`{method}` needs `{needs}`, which is missing; add `{needs}`, or choose another word")]
    MethodNeeds { method: &'static str, needs: &'static str },
    #[error(transparent)]
    AuthError(#[from] AuthErrorFault),
    #[error(transparent)]
    CredentialAddress(#[from] CredentialAddressFault),
    #[error("{0}; {remedy}", remedy = .0.remedy())]
    Confinement(#[from] ConfinementProblem),
    #[error("{0}; {remedy}", remedy = .0.remedy())]
    Limits(LimitProblem),
    #[error(transparent)]
    Notification(#[from] NotificationNameError),
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
}

/// Accepted values of `auth.mode`, for messages.
const AUTH_MODES: &str = "`none`, `apiKey`, `clientCredentials`, `authorizationCode`";

impl EntryProblem {
    /// The fault's name for programs, in the row's `details`.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject { .. } => "entry_not_an_object",
            Self::BadName(_) | Self::BadScope(_) => "name_invalid",
            Self::SameAlias { .. } => "name_taken",
            Self::NoTransport { .. } => "transport_missing",
            Self::UnknownTransport { .. } => "transport_unknown",
            Self::NoTarget => "target_missing",
            Self::TwoTargets => "target_ambiguous",
            Self::NoUrl => "url_missing",
            Self::BadUrl { .. } => "url_invalid",
            Self::NoCommand => "command_missing",
            Self::WrongType { .. } => "type_wrong",
            Self::BadDuration { .. } => "duration_invalid",
            Self::UnknownOnFlagged { .. } => "on_flagged_unknown",
            Self::UnknownRestriction { .. } => "restriction_unknown",
            Self::AllowTwice => "allow_twice",
            Self::UnknownKey(_) => "key_unknown",
            Self::Nul => "text_invalid",
            Self::BadEnvName { .. } => "env_name_invalid",
            Self::BadHeaderName { .. } => "header_name_invalid",
            Self::BadHeaderValue => "header_value_invalid",
            Self::HeaderTwice { .. } => "header_twice",
            Self::Reference { .. } => "reference_unsupported",
            Self::NoAuthMode => "auth_mode_missing",
            Self::UnknownAuthMode { .. } => "auth_mode_unknown",
            Self::NoAuthField { .. } | Self::NoClientProof | Self::NoIdentity => {
                "auth_field_missing"
            }
            Self::ProviderOfCatalog => "provider_of_catalog",
            Self::BadPrivateKey => "private_key_invalid",
            Self::UnknownChoice { .. } => "choice_unknown",
            Self::FieldsExclude { .. } => "fields_exclude",
            Self::FieldNeeds { .. } | Self::MethodNeeds { .. } => "field_needed",
            Self::AuthError(_) => "auth_error_invalid",
            Self::CredentialAddress(_) => "url_unsafe",
            Self::Confinement(ConfinementProblem::Key { .. }) => "confinement_key_unknown",
            Self::Confinement(ConfinementProblem::Word { .. }) => "confinement_invalid",
            Self::Confinement(ConfinementProblem::Empty) => "confinement_empty",
            Self::Confinement(ConfinementProblem::Type { .. }) => "type_wrong",
            Self::Limits(_) => "limits_invalid",
            Self::Notification(_) => "notification_invalid",
            Self::Placeholder(error) => error.code(),
        }
    }

    /// The environment variable that is not set.
    pub(super) fn variable(&self) -> Option<&str> {
        match self {
            Self::Placeholder(PlaceholderError::Missing { name }) => Some(name),
            _ => None,
        }
    }

    /// The keys whose absence is the fault.
    pub(super) fn missing(&self) -> &[&'static str] {
        match self {
            Self::NoTransport { .. } => &["transport"],
            Self::NoTarget => &["command", "url", "serverUrl", "httpUrl"],
            Self::NoUrl => &["url", "serverUrl", "httpUrl"],
            Self::NoCommand => &["command"],
            Self::NoAuthMode => &["mode"],
            Self::NoAuthField { key, .. } => std::slice::from_ref(key),
            Self::NoClientProof => &["clientSecret", "privateKey"],
            Self::NoIdentity => &["idToken", "refreshToken"],
            _ => &[],
        }
    }
}
