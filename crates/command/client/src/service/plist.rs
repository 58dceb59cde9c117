//! The property list of a launchd agent, as text.

use super::{own::MARK, spec::Spec};

/// The name of the agent in its domain.
pub(super) const LABEL: &str = "narthex.daemon";

const TYPE: &str = "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
    \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">";

/// The property list of a user's agent.
pub(super) fn agent(spec: &Spec) -> String {
    let words = spec.words();
    let words = strings(&words.iter().map(|word| &**word).collect::<Vec<_>>());
    let variables: String = spec
        .environment
        .iter()
        .map(|(name, value)| format!("    <key>{}</key>\n{}", escaped(name), strings(&[value])))
        .collect();
    let log = escaped(&format!("{}/daemon.log", spec.data.trim_end_matches('/')));
    let folder = escaped(&spec.folder);
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {MARK}, which also replaces it. -->
{TYPE}
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{variables}  </dict>
  <key>WorkingDirectory</key>
  <string>{folder}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>60</integer>
</dict>
</plist>
"#
    )
}

/// Texts of a list, one a line.
pub(super) fn strings(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("    <string>{}</string>\n", escaped(text))).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::RemoteArgs,
        service::{self, Manager, is_ours},
    };

    fn spec() -> Spec {
        Spec {
            program: "/Applications/A & B/narthex".to_owned(),
            data: "/Users/a/Library/<data> --x \"y\"".to_owned(),
            settings: Some("/Users/a/narthex.toml".to_owned()),
            config: None,
            port: None,
            remote: RemoteArgs::default(),
            folder: "/Users/a".to_owned(),
            environment: vec![("PATH", "/usr/bin:/opt/R&D".to_owned())],
        }
    }

    #[test]
    fn a_parser_of_property_lists_reads_the_given_words_back() {
        let text = agent(&spec());
        assert!(is_ours(&text), "{text}");
        let read = plist::Value::from_reader_xml(text.as_bytes()).unwrap();
        let read = read.as_dictionary().unwrap();
        let texts = |key: &str| -> Vec<_> {
            let items = read[key].as_array().unwrap().iter();
            items.map(|item| item.as_string().unwrap().to_owned()).collect()
        };
        assert_eq!(texts("ProgramArguments"), spec().words());
        let text_of = |key: &str| read[key].as_string().unwrap();
        assert_eq!(text_of("Label"), LABEL);
        assert_eq!(text_of("WorkingDirectory"), "/Users/a");
        assert_eq!(text_of("StandardErrorPath"), format!("{}/daemon.log", spec().data));
        let variables = read["EnvironmentVariables"].as_dictionary().unwrap();
        assert_eq!(variables["PATH"].as_string().unwrap(), "/usr/bin:/opt/R&D");
        assert_eq!(read["RunAtLoad"].as_boolean(), Some(true));
        let again = read["KeepAlive"].as_dictionary().unwrap();
        assert_eq!(again["SuccessfulExit"].as_boolean(), Some(false));
    }

    #[test]
    fn an_agent_is_known_by_its_data_directory() {
        let text = agent(&spec());
        let is_about = |data: &str| service::is_about(&text, Manager::Launchd, data.as_ref());
        assert!(is_about(&spec().data));
        assert!(!is_about("/Users/a/Library/") && !is_about("/Users/a"));
    }
}
