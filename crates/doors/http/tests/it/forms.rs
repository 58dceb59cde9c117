//! Forms of pages: their fields are the members that the document describes.

use std::collections::BTreeSet;

use narthex_http::openapi;
use serde_json::Value;

/// Compares the fields of each posted form of a page with the schema of the place that it is sent
/// to. The page is at this path.
pub(crate) fn are_described(path: &str, page: &str) {
    for form in page.split("<form").skip(1).filter_map(|rest| rest.split("</form>").next()) {
        let (tag, _) = form.split_once('>').unwrap();
        // A form without a method is read by the script of the page.
        if !tag.contains(r#"method="post""#) {
            continue;
        }
        let to = quoted(tag, "action").next().unwrap_or(path);
        let fields: BTreeSet<_> = quoted(form, "name").collect();
        let schema = schema(to);
        let members = schema["properties"].as_object();
        let members: BTreeSet<_> = members.into_iter().flatten().map(|(name, _)| &**name).collect();
        assert!(fields.is_subset(&members), "the form for {to}: {fields:?}, described {members:?}");
        let required = schema["required"].as_array();
        let required: BTreeSet<_> =
            required.into_iter().flatten().filter_map(|name| name.as_str()).collect();
        assert!(required.is_subset(&fields), "the form for {to}: {fields:?} of {required:?}");
    }
}

/// The values of an attribute.
fn quoted<'t>(text: &'t str, attribute: &str) -> impl Iterator<Item = &'t str> {
    let before = format!(" {attribute}=\"");
    let pieces: Vec<_> = text.split(&*before).skip(1).collect();
    pieces.into_iter().filter_map(|rest| rest.split('"').next())
}

/// The schema of the form that is posted to this path.
fn schema(path: &str) -> &'static Value {
    let fits = |template: &str| {
        let (wanted, had) = (template.split('/'), path.split('/'));
        wanted.clone().count() == had.clone().count()
            && wanted.zip(had).all(|(wanted, had)| wanted == had || wanted.starts_with('{'))
    };
    let paths = openapi()["paths"].as_object().unwrap();
    let fitting =
        paths.iter().filter(|(template, place)| fits(template) && place["post"] != Value::Null);
    let (_, place) = fitting.min_by_key(|(template, _)| template.matches('{').count()).unwrap();
    let content = &place["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"];
    let pointer = content["schema"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
    openapi().pointer(pointer).unwrap()
}
