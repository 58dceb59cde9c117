//! Known providers that differ from the standards: `presets.json`, found by host.

use std::{collections::BTreeMap, sync::OnceLock};

use serde::Deserialize;
use url::Url;

const TEXT: &str = include_str!("presets.json");

/// Knowledge about one provider. Settings of an operator go before it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    name: String,
    /// Hosts; a `*` stands for one label or more.
    hosts: Vec<String>,
    #[serde(default)]
    preregistered: bool,
    #[serde(default)]
    pkce: Option<Pkce>,
    #[serde(default)]
    resource: Option<Resource>,
    #[serde(default)]
    refresh_scope: Option<bool>,
    #[serde(default)]
    authorize_parameters: BTreeMap<String, String>,
    help: String,
    /// The day on which the preset was entered, such as `2026-11-27`.
    entered: String,
    sources: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pkce {
    Assume,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Resource {
    Omit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Presets {
    presets: Vec<Preset>,
}

impl Preset {
    /// The preset of an address's host. Only https has presets.
    #[must_use]
    pub fn of(url: &Url) -> Option<&'static Self> {
        let host = url.host_str().filter(|_| url.scheme() == "https")?;
        let is_of = |preset: &&Self| preset.hosts.iter().any(|pattern| matches(pattern, host));
        Self::all().iter().find(is_of)
    }

    /// All presets, for lists of known providers.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Preset>> = OnceLock::new();
        ALL.get_or_init(|| {
            let read: Presets = serde_json::from_str(TEXT).expect("a test reads this file");
            read.presets
        })
    }

    /// The provider's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Instructions for the operator who registers a client.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Documents and observations that this preset rests on.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The day on which this preset was entered, such as `2026-11-27`.
    #[must_use]
    pub fn entered(&self) -> &str {
        &self.entered
    }

    /// True if the provider registers no clients by itself.
    #[must_use]
    pub fn needs_preregistration(&self) -> bool {
        self.preregistered
    }

    /// True if the provider supports S256 without listing it.
    #[must_use]
    pub fn assumes_pkce(&self) -> bool {
        matches!(self.pkce, Some(Pkce::Assume))
    }

    /// True if the provider refuses the parameter `resource`.
    #[must_use]
    pub fn omits_resource(&self) -> bool {
        matches!(self.resource, Some(Resource::Omit))
    }

    /// True if the provider needs `scope` in refresh requests; `None` if that is not known.
    #[must_use]
    pub fn refresh_scope(&self) -> Option<bool> {
        self.refresh_scope
    }

    /// More parameters of the authorization request.
    pub fn authorize_parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.authorize_parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// True if a host matches a pattern, in which each `*` stands for one label or more.
fn matches(pattern: &str, host: &str) -> bool {
    let (pattern, host): (Vec<_>, Vec<_>) =
        (pattern.split('.').collect(), host.split('.').collect());
    labels_match(&pattern, &host)
}

fn labels_match(pattern: &[&str], host: &[&str]) -> bool {
    match (pattern.split_first(), host.split_first()) {
        (None, None) => true,
        (Some((&"*", rest)), Some((_, after))) => {
            labels_match(rest, after) || labels_match(pattern, after)
        }
        (Some((label, rest)), Some((own, after))) => label == own && labels_match(rest, after),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(url: &str) -> Option<&'static str> {
        Preset::of(&Url::parse(url).unwrap()).map(Preset::name)
    }

    #[test]
    fn presets_are_found_by_host() {
        assert_eq!(name("https://accounts.google.com"), Some("Google"));
        assert_eq!(name("https://login.microsoftonline.com/common/v2.0"), Some("Microsoft Entra"));
        assert_eq!(name("https://mcp.slack.com/mcp"), Some("Slack"));
        assert_eq!(name("https://slack.com/oauth"), Some("Slack"));
        assert_eq!(name("https://github.com/login/oauth"), Some("GitHub"));
        assert_eq!(name("https://api.figma.com"), Some("Figma"));
        assert_eq!(name("https://mcp.atlassian.com/v1/mcp"), Some("Atlassian"));
        let cognito = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_a";
        assert_eq!(name(cognito), Some("Amazon Cognito"));
        assert_eq!(name("https://a.auth.us-east-1.amazoncognito.com"), Some("Amazon Cognito"));
        for other in [
            "https://example.com",
            "https://notslack.com",
            "https://slack.com.evil.example",
            "https://accounts.google.com.evil.example",
            "http://slack.com",
            "https://cognito-idp.amazonaws.com",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn every_preset_has_help_and_sources() {
        assert_eq!(Preset::all().len(), 7);
        for preset in Preset::all() {
            assert!(!preset.help().is_empty() && !preset.sources().is_empty(), "{preset:?}");
            assert!(!preset.hosts.is_empty(), "{preset:?}");
        }
    }

    const PAGE: &str = include_str!("../../../../../docs/reference/providers.md");

    /// The rows of the table of the page with this heading.
    fn rows(heading: &str) -> Vec<&'static str> {
        let (_, table) = PAGE.split_once(heading).unwrap();
        let lines = table.trim_start().lines().skip(1);
        lines.take_while(|line| line.starts_with('|')).collect()
    }

    fn row(cells: &[&str]) -> String {
        format!("| {} |", cells.join(" | "))
    }

    /// Texts as code, or the word for none.
    fn listed(texts: impl Iterator<Item = String>) -> String {
        let all: Vec<_> = texts.map(|text| format!("`{text}`")).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }

    fn values(preset: &Preset) -> String {
        let or = |is: bool, yes, no| if is { yes } else { no };
        let parameters = preset.authorize_parameters();
        row(&[
            preset.name(),
            &listed(preset.hosts.iter().cloned()),
            or(preset.needs_preregistration(), "needed", "not needed"),
            or(preset.assumes_pkce(), "assumed", "as listed"),
            or(preset.omits_resource(), "left out", "sent"),
            or(preset.refresh_scope() == Some(true), "sent", "left out"),
            &listed(parameters.map(|(name, value)| format!("{name}={value}"))),
            preset.entered(),
        ])
    }

    #[test]
    fn the_page_of_providers_has_each_preset() {
        let all = || Preset::all().iter();
        let heading = "| provider | hosts | app of yours | PKCE | `resource` | scopes in renewals \
                       | further parameters | entered |\n";
        assert_eq!(rows(heading), all().map(values).collect::<Vec<_>>());
        // Markdown reads a `<` as the begin of a tag.
        let help = |preset: &Preset| row(&[preset.name(), &preset.help().replace('<', "\\<")]);
        assert_eq!(rows("| provider | what you do |\n"), all().map(help).collect::<Vec<_>>());
        let sources = |preset: &Preset| row(&[preset.name(), &preset.sources().join("; ")]);
        assert_eq!(rows("| provider | sources |\n"), all().map(sources).collect::<Vec<_>>());
    }
}
