//! The rows of the table of pages, and the table.

use futures_core::future::BoxFuture;
use http::Method;

use super::{answer::Answered, viewer::Viewer};
use crate::{Access, body::RequestBody};

/// The code that answers a request of a page.
pub(super) type Handler = for<'v> fn(&'v Viewer<'v>, RequestBody) -> BoxFuture<'v, Answered>;

/// A page with one method, or an action of one.
#[derive(Debug)]
pub(super) struct Page {
    /// The path below the workspace. A segment in braces matches any one segment, and a path has at
    /// most two of these. The first page has an empty path.
    pub(super) path: &'static str,
    /// `GET`, which includes `HEAD`, or `POST`.
    pub(super) method: &'static str,
    /// The access of the API's route that has the same data or does the same.
    pub(super) access: Access,
    /// The link in the navigation, if the page has one.
    pub(super) nav: Option<Nav>,
    pub(super) handler: Handler,
}

/// A link in the navigation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nav {
    pub(super) label: &'static str,
    /// One of `narthex_console::parts::ICONS`.
    pub(super) icon: &'static str,
}

impl Page {
    /// A page that shows something.
    pub(super) const fn get(path: &'static str, access: Access, handler: Handler) -> Self {
        Self { path, method: "GET", access, nav: None, handler }
    }

    /// An action: the answer to a form.
    pub(super) const fn post(path: &'static str, access: Access, handler: Handler) -> Self {
        Self { path, method: "POST", access, nav: None, handler }
    }

    /// The same page with a link in the navigation.
    pub(super) const fn in_nav(self, label: &'static str, icon: &'static str) -> Self {
        let nav = Some(Nav { label, icon });
        Self {
            path: self.path,
            method: self.method,
            access: self.access,
            nav,
            handler: self.handler,
        }
    }

    fn takes(&self, method: &Method) -> bool {
        match self.method {
            "GET" => matches!(*method, Method::GET | Method::HEAD),
            other => method.as_str() == other,
        }
    }

    fn matches<'p>(&self, rest: &'p str) -> Option<[&'p str; 2]> {
        let mut found = [""; 2];
        let mut free = found.iter_mut();
        let (mut template, mut path) = (self.path.split('/'), rest.split('/'));
        loop {
            match (template.next(), path.next()) {
                (None, None) => return Some(found),
                (Some(wanted), Some(segment)) if wanted.starts_with('{') && !segment.is_empty() => {
                    *free.next()? = segment;
                }
                (Some(wanted), Some(segment)) if wanted == segment => {}
                _ => return None,
            }
        }
    }
}

/// All pages, by file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table(pub(super) &'static [&'static [Page]]);

/// A place in a workspace, with the segments of its path that match braces, still encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'p> {
    table: Table,
    /// The path of the pages here as in the table; `None` where there is no page.
    pub(super) path: Option<&'static str>,
    pub(super) segments: [&'p str; 2],
}

impl Table {
    /// The place of a path below a workspace.
    pub(super) fn find(self, rest: &str) -> Spot<'_> {
        let found = self.all().find_map(|page| Some((page.path, page.matches(rest)?)));
        let (path, segments) = found.unzip();
        Spot { table: self, path, segments: segments.unwrap_or_default() }
    }

    /// All pages.
    pub(super) fn all(self) -> impl Iterator<Item = &'static Page> {
        self.0.iter().flat_map(|pages| pages.iter())
    }
}

impl Spot<'_> {
    /// The page for a method.
    pub(super) fn page(&self, method: &Method) -> Option<&'static Page> {
        self.pages().find(|page| page.takes(method))
    }

    /// True if something can be read here.
    pub(super) fn is_read(&self) -> bool {
        self.page(&Method::GET).is_some()
    }

    /// The methods of the place, as the header `Allow` lists them.
    pub(super) fn allowed(&self) -> String {
        let methods = self.pages().map(|page| match page.method {
            "GET" => "GET, HEAD",
            other => other,
        });
        methods.collect::<Vec<_>>().join(", ")
    }

    fn pages(&self) -> impl Iterator<Item = &'static Page> {
        let path = self.path;
        self.table.all().filter(move |page| Some(page.path) == path)
    }
}
