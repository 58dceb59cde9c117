//! The tools of the built-in server, and the sets of them that runs have.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use bytes::Bytes;
use narthex_model::{BuiltInTools, CallError, Gates, ToolScope, ToolScopes};
use narthex_upstream::{Inventory, InventoryEntry, Listed};
use narthex_wire::{Raw, json::encode_string};
use serde_json::Value;

use super::offered::Offered;
use crate::{Caller, GatewayOptions, RunView, ToPage};

/// The tools of the built-in server (X-M2). A run has only the tools of its [`BuiltInTools`].
pub trait BuiltInServer: fmt::Debug + Send + Sync {
    /// The definitions of all tools of the built-in server.
    fn definitions(&self) -> Vec<BuiltInTool<'_>>;

    /// The arguments of the asking tool with which a run asks for the lacking grant; `None` if the
    /// run may not ask for grants.
    fn ask(&self, run: &RunView, lacking: &Lacking<'_>) -> Option<Value>;

    /// Instructions for a model before it calls any of these tools; empty if there are none.
    fn instructions(&self, has: &BuiltInTools) -> String;

    /// The tool of which `name` is another name, with the arguments in this tool's form. `None` if
    /// `name` is no other name of a tool.
    fn meant(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<(&'static str, Vec<u8>)>;

    /// The arguments of a tool in the form for rules, if the same arguments have several spellings:
    /// otherwise a rule for one spelling would not apply to another. `None` if rules see the
    /// arguments as they are.
    fn shown(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<Vec<u8>>;

    /// Checks the arguments of a tool against its input schema. Called before policy: a call that
    /// cannot be made uses no grant up.
    ///
    /// # Errors
    /// The fault in the arguments, for the caller.
    fn check(&self, name: &str, arguments: Option<Raw<'_>>) -> Result<(), CallError>;

    /// Calls a tool. A call that has started completes, also if its caller stops waiting.
    fn call<'a>(&'a self, call: BuiltInCall<'a>) -> BuiltInAnswer<'a>;
}

/// The definition of a built-in tool.
#[derive(Debug, Clone)]
pub struct BuiltInTool<'a> {
    /// The tool's own name, without a prefix.
    pub name: &'a str,
    /// The tool's entry in `tools/list`: a JSON object.
    pub definition: Bytes,
    /// The scopes that a caller needs grants for.
    pub scopes: ToolScopes,
    /// True for the one tool with which runs ask for grants.
    pub is_for_asking: bool,
}

/// The permission that a call lacks.
#[derive(Debug, Clone, Copy)]
pub struct Lacking<'a> {
    /// The scope that has not been granted.
    pub scope: &'a ToolScope,
    /// The server's name in grants.
    pub server: &'a str,
    /// The server's own name of the tool, prompt or resource; empty for the server as such.
    pub name: &'a str,
}

/// A call of a built-in tool.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInCall<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The tool's own name.
    pub name: &'a str,
    /// The arguments: JSON of any kind, or absent.
    pub arguments: Option<Raw<'a>>,
    /// True if the client can lead its user to a page, and this call has not asked it to yet.
    pub leads_to_pages: bool,
    /// The [`ToPage::id`] of an earlier question, as the client repeats the id: it proves nothing.
    pub asked: Option<Raw<'a>>,
}

/// The answer of a built-in tool.
pub type BuiltInAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<BuiltInResult, CallError>> + Send + 'a>>;

/// The result of a built-in tool.
#[derive(Debug)]
pub struct BuiltInResult {
    /// The text for a model.
    pub text: String,
    /// The result for programs: an object.
    pub structured: Value,
    /// True if the text has all that a model needs. Otherwise the object follows the text as JSON,
    /// for clients that show only text to their model.
    pub is_told: bool,
    /// The page to which the client leads its user as well; only if the client can do that.
    pub to_page: Option<ToPage>,
}

/// The tools, and the lists and gates made once from their definitions.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub(crate) tools: Arc<dyn BuiltInServer>,
    pub(crate) all: Arc<Inventory>,
    /// The tool that asks for grants.
    pub(crate) asking: String,
    /// The tools for callers that see the whole configuration, if any part of it requires a grant.
    pub(crate) live: Arc<Offered>,
    /// The tools that the built-in server has under another alias.
    pub(crate) orchestration: Arc<Offered>,
    /// The tools of runs by their set, for as long as one run has them.
    kept: Mutex<HashMap<BuiltInTools, Weak<Offered>>>,
    pub(crate) gates: Gates,
}

impl BuiltIn {
    pub(crate) fn new(options: &GatewayOptions, tools: Arc<dyn BuiltInServer>) -> Self {
        let all = tools.definitions();
        let scopes = all.iter().map(|tool| (tool.name.to_owned(), tool.scopes.clone()));
        let gates = Gates::new(scopes.collect(), &BTreeMap::new(), BTreeMap::new());
        let asking = all.iter().find(|tool| tool.is_for_asking);
        let asking = asking.map(|tool| tool.name.to_owned()).unwrap_or_default();
        let offered = |has: &BuiltInTools| Arc::new(offer(options, &*tools, has));
        let (live, orchestration) =
            (offered(&BuiltInTools::live()), offered(&BuiltInTools::orchestration()));
        let all = offered(&BuiltInTools::All).inventory.clone();
        Self { tools, all, asking, live, orchestration, kept: Mutex::default(), gates }
    }

    pub(crate) fn inventory(&self) -> &Arc<Inventory> {
        &self.all
    }

    /// The tools for runs with this set of tools; all these runs share the result.
    pub(crate) fn offered(&self, options: &GatewayOptions, has: &BuiltInTools) -> Arc<Offered> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offered) = kept.get(has).and_then(Weak::upgrade) {
            return offered;
        }
        if kept.len() >= PRUNED_FROM {
            kept.retain(|_, offered| offered.strong_count() > 0);
        }
        let offered = Arc::new(offer(options, &*self.tools, has));
        kept.insert(has.clone(), Arc::downgrade(&offered));
        offered
    }
}

/// Number of sets of tools from which on sets that no run has any more are removed.
const PRUNED_FROM: usize = 64;

/// The tools of a set, as runs have them.
fn offer(options: &GatewayOptions, tools: &dyn BuiltInServer, has: &BuiltInTools) -> Offered {
    let mut all = tools.definitions();
    all.retain(|tool| has.has(tool.name));
    let entry = |tool: &BuiltInTool<'_>| {
        (Listed::Tool, InventoryEntry::new(tool.name, tool.definition.clone()))
    };
    let inventory = Arc::new(Inventory::new(all.iter().map(entry)));
    let bare: Vec<_> = all.iter().map(|tool| tool.definition.clone()).collect();
    let view = options.view_of(0, &[]).listing(&bare, &options.server_info);
    let instructions = tools.instructions(has);
    let facts = match instructions.is_empty() {
        true => Bytes::from_static(b"{}"),
        false => {
            let instructions = encode_string(&instructions);
            [br#"{"instructions":"#, &instructions[..], b"}"].concat().into()
        }
    };
    Offered { inventory, facts, view }
}
