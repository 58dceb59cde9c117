//! Kinds of shares, by the names of their files.

use ShareKind::{Archive, Code, Csv, Document, File, Image, Json, Site, Svg};

/// The kind of display of a share (X-E96).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShareKind {
    /// A site: pages, with `index.html` as the first one.
    Site,
    /// A raster image.
    Image,
    /// A vector image.
    Svg,
    /// A table as text.
    Csv,
    /// JSON, or lines of JSON.
    Json,
    /// An archive of files.
    Archive,
    /// A document for people.
    Document,
    /// Source code or other text for programs.
    Code,
    /// Any other file.
    File,
}

impl ShareKind {
    /// Every kind.
    pub const ALL: [Self; 9] =
        narthex_model::every![Site, Image, Svg, Csv, Json, Archive, Document, Code, File];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Site => "site",
            Image => "image",
            Svg => "svg",
            Csv => "csv",
            Json => "json",
            Archive => "archive",
            Document => "document",
            Code => "code",
            File => "file",
        }
    }

    /// The kind of one file, by its name.
    pub(crate) fn of_file(path: &str) -> Self {
        entry(path).map_or(File, |(_, kind, _)| *kind)
    }

    /// The kind of files that are shared together: a site where there is a page to begin with,
    /// their own kind where they are of one.
    pub(crate) fn of_files<'a>(mut paths: impl Iterator<Item = &'a str> + Clone) -> Self {
        if paths.clone().any(|path| path == INDEX) {
            return Site;
        }
        let first = paths.next().map_or(File, Self::of_file);
        // Pages without one to begin with are documents of a folder, not a site.
        match paths.all(|path| Self::of_file(path) == first) {
            true if first == Site => Document,
            true => first,
            false => File,
        }
    }
}

/// The page with which a site begins.
pub(crate) const INDEX: &str = "index.html";

/// Endings in lower case, in the order of the alphabet.
const ENDINGS: &[(&str, ShareKind, &str)] = &[
    ("7z", Archive, "application/x-7z-compressed"),
    ("avif", Image, "image/avif"),
    ("bash", Code, TEXT),
    ("bmp", Image, "image/bmp"),
    ("bz2", Archive, "application/x-bzip2"),
    ("c", Code, TEXT),
    ("cc", Code, TEXT),
    ("cpp", Code, TEXT),
    ("cs", Code, TEXT),
    ("css", Code, "text/css; charset=utf-8"),
    ("csv", Csv, "text/csv; charset=utf-8"),
    ("diff", Code, TEXT),
    ("doc", Document, "application/msword"),
    ("docx", Document, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("gif", Image, "image/gif"),
    ("go", Code, TEXT),
    ("gz", Archive, "application/gzip"),
    ("h", Code, TEXT),
    ("hpp", Code, TEXT),
    ("htm", Site, HTML),
    ("html", Site, HTML),
    ("ico", Image, "image/vnd.microsoft.icon"),
    ("java", Code, TEXT),
    ("jpeg", Image, "image/jpeg"),
    ("jpg", Image, "image/jpeg"),
    ("js", Code, "text/javascript; charset=utf-8"),
    ("json", Json, "application/json"),
    ("jsonl", Json, "application/jsonl"),
    ("jsx", Code, TEXT),
    ("kt", Code, TEXT),
    ("log", Document, TEXT),
    ("lua", Code, TEXT),
    ("markdown", Document, MARKDOWN),
    ("md", Document, MARKDOWN),
    ("mjs", Code, "text/javascript; charset=utf-8"),
    ("ndjson", Json, "application/x-ndjson"),
    ("odp", Document, "application/vnd.oasis.opendocument.presentation"),
    ("ods", Document, "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", Document, "application/vnd.oasis.opendocument.text"),
    ("patch", Code, TEXT),
    ("pdf", Document, "application/pdf"),
    ("php", Code, TEXT),
    ("png", Image, "image/png"),
    ("pptx", Document, "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("py", Code, TEXT),
    ("rb", Code, TEXT),
    ("rs", Code, TEXT),
    ("rst", Document, TEXT),
    ("rtf", Document, "application/rtf"),
    ("sh", Code, TEXT),
    ("sql", Code, TEXT),
    ("svg", Svg, "image/svg+xml"),
    ("swift", Code, TEXT),
    ("tar", Archive, "application/x-tar"),
    ("tgz", Archive, "application/gzip"),
    ("toml", Code, TEXT),
    ("ts", Code, TEXT),
    ("tsv", Csv, "text/tab-separated-values; charset=utf-8"),
    ("tsx", Code, TEXT),
    ("txt", Document, TEXT),
    ("webp", Image, "image/webp"),
    ("xlsx", Document, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", Code, "application/xml"),
    ("xz", Archive, "application/x-xz"),
    ("yaml", Code, TEXT),
    ("yml", Code, TEXT),
    ("zip", Archive, "application/zip"),
    ("zst", Archive, "application/zstd"),
];

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// The content type of a file by its name; `application/octet-stream` for an unknown one.
#[must_use]
pub fn content_type(path: &str) -> &'static str {
    entry(path).map_or("application/octet-stream", |(.., content_type)| *content_type)
}

fn entry(path: &str) -> Option<&'static (&'static str, ShareKind, &'static str)> {
    let name = path.rsplit('/').next()?;
    let (stem, ending) = name.rsplit_once('.')?;
    // A name that only begins with a dot has no ending.
    if stem.is_empty() {
        return None;
    }
    let ending = ending.to_ascii_lowercase();
    let found = ENDINGS.binary_search_by(|(one, ..)| (*one).cmp(ending.as_str()));
    found.ok().map(|index| &ENDINGS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row out of its place would not be found.
    #[test]
    fn x_e96_each_ending_is_found() {
        for (ending, kind, content_type_of_it) in ENDINGS {
            let path = format!("a.b/c.{}", ending.to_ascii_uppercase());
            assert_eq!(ShareKind::of_file(&path), *kind, "{path}");
            assert_eq!(content_type(&path), *content_type_of_it, "{path}");
        }
        for path in ["a", "a.", ".png", "a.png/b", "a.none"] {
            assert_eq!(ShareKind::of_file(path), File, "{path}");
            assert_eq!(content_type(path), "application/octet-stream", "{path}");
        }
    }

    #[test]
    fn x_e96_several_files_have_a_common_kind_or_are_plain_files() {
        let cases = [
            (&["index.html", "a.css"][..], Site),
            (&["sub/index.html", "a.css"], File),
            (&["a.html", "b.htm"], Document),
            (&["a.png", "b/c.jpg"], Image),
            (&["a.png", "b.svg"], File),
            (&["a.rs"], Code),
        ];
        for (paths, kind) in cases {
            assert_eq!(ShareKind::of_files(paths.iter().copied()), kind, "{paths:?}");
        }
    }
}
