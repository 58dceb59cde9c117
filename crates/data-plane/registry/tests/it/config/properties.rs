//! Properties that hold for any input.

use proptest::prelude::*;

use super::*;

/// Any JSON, in which keys with a meaning are likely.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "(stdio|http|sse|apiKey|https://x|\\$\\{env:[A-Z]{0,4}|\\$\\{|\\}|\\$|:-|.){0,6}"
            .prop_map(Into::into),
    ];
    let key = prop_oneof![
        "servers|mcpServers|transport|type|url|command|args|env|auth|mode|key|headers|timeoutMs|\
         client|tokens|scopes|cwd|name|disabled",
        ".{0,4}",
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn check(text: &[u8]) -> Result<(), TestCaseError> {
    match parse(text, &context()) {
        Err(error) => {
            prop_assert!(!error.remedy().is_empty());
            prop_assert_eq!(error.kind(), narthex_model::ErrorKind::Invalid);
        }
        Ok(config) => {
            for entry in config.entries {
                if let Entry::Fault(fault) = entry {
                    prop_assert!(fault.error.message.contains("/repo/mcp.json: `"));
                    prop_assert!(fault.error.details.is_some());
                }
            }
        }
    }
    prop_assert!(parse_settings(text, &context()).is_ok() || parse(text, &context()).is_err());
    Ok(())
}

proptest! {
    #[test]
    fn e117_any_bytes_give_entries_or_an_error_with_a_remedy(
        text in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        check(&text)?;
    }

    #[test]
    fn e117_any_json_gives_entries_or_an_error_with_a_remedy(value in json()) {
        check(value.to_string().as_bytes())?;
    }

    #[test]
    fn e117_any_entry_is_a_server_or_a_fault(value in json(), key in "servers|mcpServers") {
        let file = serde_json::json!({ key: { "x": value } });
        let config = parse(file.to_string().as_bytes(), &context()).unwrap();
        prop_assert_eq!(config.entries.len(), 1);
    }

    /// E53: arguments without placeholders arrive as they were written.
    #[test]
    fn e53_arguments_round_trip(args in prop::collection::vec("[^\u{0}$]{0,12}", 0..6)) {
        let file = serde_json::json!({
            "servers": { "x": { "transport": "stdio", "command": "true", "args": args } },
        });
        let (read, _) = only(parse(file.to_string().as_bytes(), &context()).unwrap());
        prop_assert_eq!(stdio(read).args, args);
    }

    /// The escape makes it possible to write any text.
    #[test]
    fn e115_any_text_can_be_written_with_the_escape(text in "[${}a-z:]{0,16}") {
        let file = serde_json::json!({
            "servers": { "x": { "transport": "stdio", "command": "true",
                                "args": [text.replace("${", "$${")] } },
        });
        let (read, _) = only(parse(file.to_string().as_bytes(), &context()).unwrap());
        prop_assert_eq!(&stdio(read).args[0], &text);
    }

    /// S30: whatever a variable holds arrives as it is, in both documents.
    #[test]
    fn s30_no_value_is_expanded_twice(
        value in "(\\$\\{env:V\\}|\\$\\{|\\}|\\$|workspaceRoot|.){0,8}",
    ) {
        prop_assume!(!value.contains('\0'));
        let env = |name: &str| (name == "V").then(|| value.clone());
        let context = LoadContext { env: Env::Values(&env), ..context() };
        for (key, text) in [("servers", "<${env:V}|${env:V}>"), ("mcpServers", "<${V}|${V}>")] {
            let file = serde_json::json!({
                key: { "x": { "transport": "stdio", "command": "true", "args": [text] } },
            });
            let (read, _) = only(parse(file.to_string().as_bytes(), &context).unwrap());
            prop_assert_eq!(&stdio(read).args[0], &format!("<{value}|{value}>"));
        }
    }
}
