//! Phrases by which a definition instructs a model beyond its own use, or asks for data that it
//! should not get.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::{finding::Rule, folded::Folded};

// Phrases are expressions over folded words; `~3` stands for up to three words of one sentence.

const OVERRIDES: &[&str] = &[
    " (?:ignor(?:e|ing)|disregard(?:ing)?|forget|neglect|overrid(?:e|ing)|overrule|bypass) \
     ~3(?:previous|prior|above|earlier|preceding|foregoing|system|safety|your|original) \
     ~3(?:instruction|prompt|rule|guideline|directive|constraint|command|safeguard|training)s? ",
    " (?:ignore|disregard|forget|override) ~2(?:all|any|other|these|those) \
     ~2(?:instruction|prompt|guideline|directive)s? ",
    " (?:ignore|disregard|forget) (?:everything|anything) ~3(?:above|told|said|learned|so far) ",
    " (?:dont|do not|never|no longer|stop) (?:follow|following|obey|obeying|comply with|listen to) \
     ~4(?:instruction|prompt|rule|guideline|user|developer|policie)s? ",
    " you are (?:now|no longer) (?:a|an|the|in|free|bound|operating|unrestricted|restricted|dan) ",
    " your (?:new|real|true|actual|only) (?:goal|task|objective|purpose|mission|instruction)s? \
     (?:is|are) ",
    " (?:takes?|have|has|with) (?:precedence|priority) over ~4(?:instruction|prompt|message)s? ",
    " (?:dan|god|jailbreak|unrestricted) mode ",
    " pretend ~2(?:you|to be) ",
];

/// The first of these phrases in other languages: one of the first words near one of the second.
const OVERRIDES_FOREIGN: &[(&[&str], &[&str])] = &[
    (&["ignoriere", "ignorieren sie", "vergiss", "missachte"], &["anweisungen", "instruktionen"]),
    (&["ignora", "ignore", "olvida", "omite"], &["instrucciones"]),
    (&["ignora", "ignori", "dimentica"], &["istruzioni"]),
    (&["ignore", "esqueça", "desconsidere"], &["instruções"]),
    (&["ignore", "ignorez", "oublie", "oubliez"], &["instructions précédentes", "consignes"]),
    (&["игнорируй", "игнорируйте", "забудь", "забудьте"], &["инструкции", "указания"]),
    (&["忽略", "无视", "忘记", "無視", "忘れ"], &["指令", "指示", "命令"]),
];

const SECRECY: &[&str] = &[
    " (?:dont|do not|never|must not|mustnt|should not|shouldnt|shall not|avoid|without|\
     refrain from) ~2(?:tell|inform|mention|notify|reveal|disclos|disclose|\
     alert|admit|warn|explain)(?:ing)? ~7\
     (?:the|your|to|any|a|this) (?:end )?(?:user|human|person|operator|developer)s? ",
    " (?:dont|do not|never|without) ~1(?:tell|inform|mention|reveal|disclose)(?:ing)? \
     ~4(?:anyone|anybody|them) ",
    " (?:dont|do not|never) (?:mention|disclose|reveal|acknowledge) \
     (?:this|that|these|the) ~1(?:step|instruction|note|sidenote|tool|message|fact|file|prompt)s? ",
    " (?:dont|do not|never) (?:mention|disclose|reveal) (?:this|that|it) ~1(?:\\.|to|in|and|or) ",
    " (?:hide|conceal|hidden|keep|kept|withhold) ~4\
     from the (?:end )?(?:user|human|person|operator)s? ",
    " (?:keep|kept) (?:this|it|that|these) ~2(?:secret|hidden|confidential|private|quiet) ",
    " without ~2(?:users?|humans?|persons?|operators?) ~1(?:knowledge|knowing|noticing|awareness|\
     consent|realizing|realising) ",
    " so (?:that )?the (?:user|human) (?:does not|doesnt|wont|will not|cannot|cant|never) \
     ~1(?:know|knows|notice|notices|worry|worries|realize|suspect|suspects) ",
    " (?:users?|humans?) (?:must not|mustnt|should not|shouldnt|need not|cannot|may not) \
     ~1(?:be aware|know|be told|be informed|notice|find out) ",
    " (?:secretly|covertly|surreptitiously|stealthily) ",
    " silently (?:call|send|invoke|run|execute|forward|copy|add|include|read|upload|append) ",
];

const CONTEXT: &[&str] = &[
    " (?:include|send|pass|provide|print|reveal|output|repeat|append|attach|forward|copy|paste|put|\
     call|invoke|insert|write|dump|leak|share) ~6(?:system prompts?|system message|\
     developer message|chain of thought|context window|conversation history|chat history|\
     message history|\
     (?:entire|full|whole|complete|current) conversation|(?:previous|prior|earlier) messages) ",
    " (?:send|forward|exfiltrate|leak|upload|transmit|post|email|include|pass|append|attach) \
     ~3(?:all|any|your|\
     their|users?|found|these|those|every|available) ~2(?:api keys?|passwords?|credentials?|\
     private keys?|access tokens?|environment variables?|secrets) ",
];

/// Names of parameters that make a model reveal its context.
const CONTEXT_NAMES: &str = "^ (?:(?:conversation|chat|message|tool calls?) history|system prompt|\
     chain of thought|previous messages|full conversation|conversation context|tools? list \
     history) $";

const REDIRECTS: &[&str] = &[
    " (?:all|every|any) ~1(?:e ?mails?|messages?|payments?|requests?|files?|data|transactions?) \
     ~4(?:must|should|shall|need to|needs to|have to|has to) ~3(?:sent|send|forwarded|go|routed|\
     addressed|delivered|copied|redirected) ~1to ",
    " (?:must|always|should|shall) ~2(?:send|forward|redirect|route|deliver|bcc|cc|copy) \
     (?:all|every|any|each|the) ~4to [^ ]+ ",
    " (?:must|always) ~1b?cc ",
    " (?:change|replace|set) ~2(?:recipient|address|number|iban|account)s? ~2(?:to|with) \
     ~2[^ ]*[0-9]{7}",
];

const OTHERS: &[&str] = &[
    " (?:before|prior to|when|whenever|after|instead of|while|if) ~3(?:any|every|all|other|another|\
     each) (?:of the )?(?:other |available |mcp )?tools? ",
    " (?:dont|do not|never|avoid) ~1(?:use|using|call|calling|invoke|invoking|trust) ~3(?:other|\
     another|built in|default|native|original|old) ~2tools? ",
    " (?:supersedes?|supplants?|overrides?|replaces?) ~3tools? ",
    " (?:always|must) ~2(?:prefer|choose|select|pick|use) ~3(?:over|instead of|rather than) ~5\
     (?:others?|any|all|every|alternatives?|tools?) ",
];

/// The use of another tool; phrases about "this" or "the tool" are ordinary in a definition.
const OTHERS_USED: &str = " (?:when|whenever|if|before|after|while|every time|each time) ~3tools? \
     ~3(?:is|are|gets?|was|has been) (?:called|used|invoked|available|present|run|executed) ";

const APPROVAL: &[&str] = &[
    " (?:dont|do not|never|no need to|need not|must not|avoid) ~1(?:ask|asking|request|requesting|\
     wait|waiting|seek|seeking|prompt|prompting) ~4(?:confirmation|permission|approval|consent|\
     authorization) ",
    " (?:the|this|your) (?:user|human|operator) (?:has )?already (?:approved|agreed|consented|\
     authorized|authorised|granted|permitted|given) ",
];

const ADDRESSES: &[&str] = &[
    " (?:attention|note to|notice to|dear|listen|important (?:note |notice )?for) ~1(?:ai|llm|\
     assistant|language model|model|agent|claude|gpt|chatgpt|copilot|gemini)s? ",
    " if you are an? ~2(?:ai|llm|language model|assistant|chatbot) ",
    " as an (?:ai|llm)(?: assistant| model| agent| language model)? you ",
];

/// Words for reading; the object follows or goes before.
const READ: &str = "(?:read|reads|reading|open|opening|cat|load|loads|include|including|send|\
     sending|pass|passing|copy|upload|attach|provide|paste|print|fetch|access|get|put|retrieve|\
     extract|contents?|dump|exfiltrate|steal|show|list|curl|base64)";

/// Files that hold secrets.
const SECRET: &str = "(?:[^ ]*\\.ssh|id rsa|id ed25519|id ecdsa|id dsa|authorized keys|\
     [^ ]*\\.aws credentials|\\.env|\\.netrc|\\.npmrc|\\.pypirc|\\.pgpass|\\.git credentials|\
     \\.kube config|\\.docker config|etc passwd|etc shadow|[^ ]*mcp\\.json|claude desktop config|\
     \\.bash history|\\.zsh history|wallet\\.dat|\\.gnupg|\\.config gcloud)[^ ]*";

/// Largest number of examined matches of a phrase in one text; the match after them counts as a
/// finding.
const TRIES_MAX: usize = 16;

/// An expression, and words with which its match is ordinary.
struct Phrase {
    rule: Rule,
    text: String,
    unless: &'static [&'static str],
}

struct Phrases {
    /// All expressions together, to find in one pass that none matches.
    any: RegexSet,
    each: Vec<(Phrase, Regex)>,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let phrases = phrases();
    let texts = phrases.iter().map(|phrase| phrase.text.as_str());
    let any = RegexSetBuilder::new(texts).unicode(false).build().expect("they are valid");
    let each = phrases.into_iter().map(|phrase| {
        let regex = RegexBuilder::new(&phrase.text).unicode(false).build();
        (phrase, regex.expect("it is valid"))
    });
    Phrases { any, each: each.collect() }
});

fn phrases() -> Vec<Phrase> {
    let groups = [
        (Rule::OverridesInstructions, OVERRIDES),
        (Rule::Secrecy, SECRECY),
        (Rule::AsksForContext, CONTEXT),
        (Rule::Redirects, REDIRECTS),
        (Rule::OtherTools, OTHERS),
        (Rule::SkipsApproval, APPROVAL),
        (Rule::AddressesModel, ADDRESSES),
    ];
    let phrase = |rule, words: &str| Phrase { rule, text: with_gaps(words), unless: &[] };
    let mut phrases = Vec::new();
    for (rule, all) in groups {
        phrases.extend(all.iter().map(|words| phrase(rule, words)));
    }
    for (ones, others) in OVERRIDES_FOREIGN {
        let (one, other) = (any_of(ones), any_of(others));
        let text = format!("{one}[^.]{{0,60}}{other}|{other}[^.]{{0,60}}{one}");
        phrases.push(Phrase { rule: Rule::OverridesInstructions, text, unless: &[] });
    }
    phrases.push(phrase(Rule::AsksForContext, CONTEXT_NAMES));
    phrases.push(phrase(Rule::SecretFiles, &format!(" {READ} ~9{SECRET} ")));
    phrases.push(phrase(Rule::SecretFiles, &format!(" {SECRET} ~5{READ} ")));
    let others = phrase(Rule::OtherTools, OTHERS_USED);
    phrases.push(Phrase { unless: &[" this tool ", " the tool "], ..others });
    phrases
}

/// The expression with its marks for gaps replaced.
fn with_gaps(words: &str) -> String {
    let mut parts = words.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (most, rest) = part.split_at(1);
        text.push_str(&format!("(?:(?:[^ .][^ ]*|\\.[^ ]+) ){{0,{most}}}{rest}"));
    }
    text
}

/// A pattern for any of these texts, in their folded form.
fn any_of(texts: &[&str]) -> String {
    let folded = texts.iter().map(|text| regex::escape(Folded::new(text).text.trim()));
    format!("(?:{})", folded.collect::<Vec<_>>().join("|"))
}

/// The places of such phrases in the text, once for each rule.
pub(crate) fn instructions(text: &str) -> Vec<(Rule, String)> {
    let folded = Folded::new(text);
    let words = folded.text.as_bytes();
    let mut found = Vec::<(Rule, String)>::new();
    if let Some(range) = folded.spaced_letters() {
        found.push((Rule::SpacedLetters, text[folded.original(range)].to_owned()));
    }
    for index in PHRASES.any.matches(words) {
        let (phrase, regex) = &PHRASES.each[index];
        if found.iter().any(|(rule, _)| *rule == phrase.rule) {
            continue;
        }
        let is_meant = |at: &regex::bytes::Match<'_>| {
            let has = |words: &&str| {
                at.as_bytes().windows(words.len()).any(|part| part == words.as_bytes())
            };
            !phrase.unless.iter().any(has)
        };
        let mut matches = regex.find_iter(words).enumerate();
        let at = matches.find(|(tries, at)| *tries == TRIES_MAX || is_meant(at));
        if let Some((_, at)) = at {
            let original = text[folded.original(at.range())].trim();
            found.push((phrase.rule, original.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests;
