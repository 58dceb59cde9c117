//! The files that pages load. Their addresses have a hash of their contents, so that browsers keep
//! them without asking again. They are compressed once in each process.
//!
//! The script is one file: htmx and its extension for event streams would race as two.

use std::{io::Write, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

/// Number of hexadecimal digits of the hash in an address.
const HASH_DIGITS: usize = 16;

const SCRIPT: &str = concat!(
    "/*! htmx 4.0.1 and its extension hx-sse, Zero-Clause BSD; see assets/vendor of narthex */\n",
    include_str!("../assets/vendor/htmx-4.0.1.min.js"),
    include_str!("../assets/vendor/hx-sse-4.0.1.min.js"),
    include_str!("../assets/elements.js"),
);

/// One file.
#[derive(Debug)]
pub struct Asset {
    /// The path at which it is served.
    pub path: String,
    /// The media type.
    pub media: &'static str,
    /// The contents.
    pub text: &'static str,
    /// The contents, compressed with gzip.
    pub gzip: Vec<u8>,
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("console", "css", "text/css; charset=utf-8", include_str!("../assets/console.css"))
});
static SCRIPTS: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("console", "js", "text/javascript; charset=utf-8", SCRIPT));
static SPRITE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("icons", "svg", "image/svg+xml", include_str!("../assets/icons.svg"))
});
static MARK: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("mark", "svg", "image/svg+xml", include_str!("../assets/mark.svg"))
});

/// All files.
#[must_use]
pub fn all() -> [&'static Asset; 4] {
    [&STYLE, &SCRIPTS, &SPRITE, &MARK]
}

/// The file at a path; `None` if there is none, such as one of another version.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    all().into_iter().find(|asset| asset.path == path)
}

/// The path of the style.
#[must_use]
pub fn style() -> &'static str {
    &STYLE.path
}

/// The path of the script.
#[must_use]
pub fn script() -> &'static str {
    &SCRIPTS.path
}

/// The path of the sprite, which has a symbol for each icon.
#[must_use]
pub fn sprite() -> &'static str {
    &SPRITE.path
}

/// The path of the icon of the pages.
#[must_use]
pub fn mark() -> &'static str {
    &MARK.path
}

impl Asset {
    fn new(name: &str, extension: &str, media: &'static str, text: &'static str) -> Self {
        let mut hash = hex::encode(Sha256::digest(text));
        hash.truncate(HASH_DIGITS);
        let path = format!("/assets/{name}.{hash}.{extension}");
        Self { path, media, text, gzip: compressed(text) }
    }
}

/// # Panics
/// Never: a vector takes everything.
fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages are opened on phones: all files together stay small.
    #[test]
    fn assets_are_under_60_kb_compressed_altogether() {
        let sum: usize = all().iter().map(|asset| asset.gzip.len()).sum();
        assert!(sum < 60_000, "{sum} bytes");
        assert!(sum > 10_000, "{sum} bytes: a file is missing");
    }

    #[test]
    fn each_file_has_an_address_of_its_own_that_its_contents_decide() {
        for asset in all() {
            assert_eq!(find(&asset.path).unwrap().path, asset.path);
        }
        let one = Asset::new("a", "css", "text/css", "x{}");
        let other = Asset::new("a", "css", "text/css", "y{}");
        assert_ne!(one.path, other.path);
        assert!(find("/assets/console.0000000000000000.css").is_none());
    }

    /// The policy would refuse the rest only at run time, in a browser.
    #[test]
    fn files_load_nothing_from_elsewhere_and_run_no_text_as_code() {
        for word in ["url(", "@import", "http:", "https:"] {
            assert!(!STYLE.text.contains(word), "{word}");
        }
        for word in ["eval(", "new Function", "document.write", "sourceMappingURL"] {
            assert!(!SCRIPTS.text.contains(word), "{word}");
        }
        let own = include_str!("../assets/elements.js");
        for word in ["innerHTML", "insertAdjacentHTML", "http:", "https:"] {
            assert!(!own.contains(word), "{word}");
        }
    }

    /// Each icon that a template or a view names is in the sprite.
    #[test]
    fn icons_are_symbols_of_the_sprite() {
        for name in crate::parts::ICONS {
            assert!(SPRITE.text.contains(&format!("<symbol id=\"{name}\"")), "{name}");
        }
    }
}
