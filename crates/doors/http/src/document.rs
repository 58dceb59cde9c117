//! The OpenAPI document of all routes in [`ROUTES`].

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde_json::Value;

use crate::{
    ROUTES,
    openapi::{Place, document},
};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    document(ROUTES.iter().map(|route| Place {
        template: route.template,
        methods: route.methods,
        access: route.access,
    }))
});

/// The OpenAPI document of all routes in [`ROUTES`].
#[must_use]
pub fn openapi() -> &'static Value {
    &DOCUMENT
}
