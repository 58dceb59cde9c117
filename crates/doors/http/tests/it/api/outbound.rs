//! Tests of channels and webhooks, with a receiver that checks what it receives.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::StatusCode;
use narthex_store::Store;
use narthex_testkit::clock::SteppedClock;
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{
        Semaphore,
        mpsc::{self, error::TryRecvError},
    },
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;

use super::{
    built_in::{Run, with_tools},
    world::Api,
};
use crate::{
    browser::Site,
    decision::{decide, look, page_of},
};

const HERE: &str = "/api/workspaces/default";
const KEY: &str = "a-key-that-signs-everything";

impl Api {
    pub(super) async fn set_secret(&self, name: &str, value: &str) {
        let body = json!({ "value": value }).to_string();
        let answer = self.send("PUT", &format!("{HERE}/secrets/{name}"), body).await;
        assert!(answer.status.is_success(), "{}", answer.text());
    }

    async fn set_channel(&self, name: &str, channel: Value) -> Value {
        let path = format!("{HERE}/channels/{name}");
        self.send("PUT", &path, channel.to_string()).await.succeeded()
    }
}

/// A received message.
struct Letter {
    head: String,
    body: Value,
    text: String,
}

impl Letter {
    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(one, _)| one.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value).unwrap_or_default()
    }

    /// Checks the signature as Standard Webhooks defines it.
    #[track_caller]
    fn is_signed(&self, key: &str) -> bool {
        let (id, at) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
        mac.update(format!("{id}.{at}.{}", self.text).as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.header("webhook-signature") == expected
    }
}

/// A receiver of messages. It answers with the given statuses, and then with 200.
struct Receiver {
    port: u16,
    answers: Arc<Mutex<VecDeque<u16>>>,
    may_answer: Arc<Semaphore>,
    /// The target of its redirects.
    leads_to: Arc<Mutex<String>>,
    letters: mpsc::Receiver<Letter>,
    task: JoinHandle<()>,
}

impl Receiver {
    async fn new(answers: impl IntoIterator<Item = u16>) -> Self {
        Self::with(answers, Semaphore::MAX_PERMITS).await
    }

    /// A receiver that answers only when the test permits it.
    async fn held() -> Self {
        Self::with([], 0).await
    }

    async fn with(answers: impl IntoIterator<Item = u16>, may_answer: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let (sender, letters) = mpsc::channel(100);
        let (given, may_answer) = (answers.clone(), Arc::new(Semaphore::new(may_answer)));
        let (may, leads_to) = (may_answer.clone(), Arc::new(Mutex::new(String::new())));
        let onward = leads_to.clone();
        let task = TaskTracker::new().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = given.lock().unwrap().pop_front().unwrap_or(200);
                let (mut stream, letter) = receive(stream).await;
                sender.send(letter).await.unwrap();
                may.acquire().await.unwrap().forget();
                let onward = match answer {
                    300..400 => format!("location: {}\r\n", onward.lock().unwrap()),
                    _ => String::new(),
                };
                let head = format!("HTTP/1.1 {answer} X\r\ncontent-length: 0\r\n{onward}");
                let answer = format!("{head}connection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { port, answers, may_answer, leads_to, letters, task }
    }

    fn answer(&self) {
        self.may_answer.add_permits(1);
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?token=a-token-of-the-hook", self.port)
    }

    async fn next(&mut self) -> Letter {
        self.letters.recv().await.unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(stream: TcpStream) -> (BufReader<TcpStream>, Letter) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).await.unwrap() > 0, "{head}");
    }
    let of_length = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
    };
    let mut body = vec![0; head.lines().find_map(of_length).unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    let text = String::from_utf8(body).unwrap();
    let letter = Letter { head, body: serde_json::from_str(&text).unwrap(), text };
    (stream, letter)
}

async fn daemon(place: &TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_secrets(store, &place.path().join("master.key")).await;
    let agent = with_tools(json!({ "name": "writer" }));
    api.send("POST", &format!("{HERE}/agents"), agent).await.succeeded();
    api
}

/// Runs `work` with a clock that advances with the steps of this process. So no deadline passes
/// while the machine is busy elsewhere.
async fn steadily<T>(work: impl Future<Output = T>) -> T {
    let _clock = SteppedClock::by(Duration::from_millis(1));
    work.await
}

/// X-M3: a channel's message is signed, is retried where that may help, and has its author. The
/// agent does not learn its address.
#[tokio::test]
async fn messages_are_signed_and_tried_again() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let mut receiver = Receiver::new([503]).await;
    api.set_secret("HOOK_URL", &receiver.url()).await;
    api.set_secret("HOOK_KEY", KEY).await;
    let channel = json!({ "provider": "webhook", "url": "${HOOK_URL}",
                          "signing_key": { "$secret": "HOOK_KEY" } });
    let set = api.set_channel("alarms", channel).await;
    assert_eq!((&set["url"], &set["signing_key"]), (&json!("${HOOK_URL}"), &json!("${HOOK_KEY}")));
    let run = Run::of(&api, "writer").await;
    let said = json!({ "channel": "#alarms", "text": "it burns", "thread_id": "t1" });
    let posted = steadily(Box::pin(run.called("post_message", said))).await;
    assert_eq!((&posted["ok"], &posted["channel"]), (&json!(true), &json!("alarms")));
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert!(first.is_signed(KEY) && second.is_signed(KEY), "{}", second.head);
    assert!(!second.is_signed("another key"));
    assert_eq!(first.header("webhook-id"), posted["message_id"].as_str().unwrap());
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(
        (&second.body["text"], &second.body["thread_id"]),
        (&json!("it burns"), &json!("t1"))
    );
    assert_eq!(second.body["session_id"], run.session.as_str());
    let told = run.call("post_message", json!({ "channel": "alarms", "text": "x" })).await;
    let listed = api.get(&format!("{HERE}/channels")).await;
    for said in [told.to_string(), listed.to_string()] {
        assert!(!said.contains("a-token-of-the-hook") && !said.contains(KEY), "{said}");
    }
}

/// X-M3: failed posts are ordinary results, with the codes of the table.
#[tokio::test]
async fn a_failed_message_is_a_result_with_an_error_code() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let mut receiver = Receiver::new([403]).await;
    let run = Run::of(&api, "writer").await;
    let post = async |channel: &str| {
        let told = run.called("post_message", json!({ "channel": channel, "text": "x" })).await;
        told["error"].as_str().map(str::to_owned)
    };
    assert_eq!(post("none").await.as_deref(), Some("channel_not_found"));
    api.set_channel("notes", json!({ "provider": "log" })).await;
    assert_eq!(post("notes").await, None);
    api.set_secret("CHAT_URL", &receiver.url()).await;
    api.set_channel("chat", json!({ "provider": "slack", "url": "${CHAT_URL}" })).await;
    assert_eq!(post("chat").await.as_deref(), Some("messaging_unauthorized"));
    receiver.next().await;
    let said = json!({ "channel": "chat", "text": "<!channel> & all", "username": "Robot" });
    run.called("post_message", said).await;
    let letter = receiver.next().await.body;
    assert_eq!(letter, json!({ "text": "&lt;!channel&gt; &amp; all", "username": "Robot" }));
    // No receiver listens at this port, and no other process can take it.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = closed.local_addr().unwrap();
    api.set_secret("CHAT_URL", &format!("http://{address}/")).await;
    let told = steadily(Box::pin(post("chat"))).await;
    assert_eq!(told.as_deref(), Some("messaging_provider_unreachable"));
    // A receiver listens here, but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    api.set_secret("CHAT_URL", &format!("http://{address}/")).await;
    assert_eq!(post("chat").await.as_deref(), Some("provider_timeout"));
    let path = format!("{HERE}/secrets/CHAT_URL");
    assert!(api.ask("DELETE", &path).send().await.status.is_success());
    assert_eq!(post("chat").await.as_deref(), Some("messaging_unauthorized"));
    assert_eq!(api.ask("DELETE", &format!("{HERE}/channels/chat")).send().await.status, 204);
    assert_eq!(post("chat").await.as_deref(), Some("channel_not_found"));
}

/// X-E37, X-E38: an author of a channel or webhook cannot reach addresses of this host through it.
/// No connection is made in any attempt.
#[tokio::test]
async fn x_e37_channels_and_webhooks_do_not_connect_to_this_host() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    // This socket accepts no connections by itself, so one that was made would still be waiting at
    // the end.
    let inside = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    inside.set_nonblocking(true).unwrap();
    let port = inside.local_addr().unwrap().port();
    let is_untouched = || {
        let came = inside.accept().map(|(_, from)| from);
        came.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let run = Run::of(&api, "writer").await;
    for host in ["localhost", "127.0.0.2", "[::ffff:127.0.0.1]", "0x7f.1.1"] {
        let url = format!("https://{host}:{port}/");
        api.set_secret("INSIDE_URL", &url).await;
        api.set_channel("inside", json!({ "provider": "slack", "url": "${INSIDE_URL}" })).await;
        let said = json!({ "channel": "inside", "text": "x" });
        let told = steadily(Box::pin(run.called("post_message", said))).await;
        assert_eq!(told["error"], "messaging_provider_unreachable", "{url}");
        assert!(is_untouched(), "{url}");
    }
    api.set_secret("OPS_KEY", KEY).await;
    let webhook = json!({ "url": "${INSIDE_URL}", "signing_key": "${OPS_KEY}" }).to_string();
    api.send("PUT", &format!("{HERE}/webhooks/ops"), webhook).await.succeeded();
    api.ask("DELETE", &format!("{HERE}/sessions/{}", run.session)).send().await;
    api.outbound.start(Duration::from_millis(20));
    while api.outbound.counts()[1] == 0 {
        tokio::task::yield_now().await;
    }
    assert!(is_untouched(), "a webhook");
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    assert!(!is_untouched(), "a connection would have been seen");
}

/// X-E37: a redirect does not count as delivery, and nothing is sent to its target.
#[tokio::test]
async fn x_e37_redirects_of_receivers_are_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let (mut first, mut second) = (Receiver::new([307, 302]).await, Receiver::new([]).await);
    *first.leads_to.lock().unwrap() = second.url();
    api.set_secret("CHAT_URL", &first.url()).await;
    api.set_channel("chat", json!({ "provider": "slack", "url": "${CHAT_URL}" })).await;
    let run = Run::of(&api, "writer").await;
    let said = json!({ "channel": "chat", "text": "x" });
    let posted = steadily(Box::pin(run.called("post_message", said.clone()))).await;
    // The message is tried again, like after other temporary failures.
    assert_eq!(posted["ok"], true, "{posted}");
    for _ in 0..3 {
        first.next().await;
    }
    assert_eq!(second.letters.try_recv().err(), Some(TryRecvError::Empty), "it went there");
}

/// X-M3: all faults of a channel or a webhook are reported at once, and no value is repeated.
#[tokio::test]
async fn faults_of_channels_and_webhooks_are_reported_without_values() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    api.set_secret("PLAIN_URL", "http://hooks.example.com/a-path-that-is-secret").await;
    let cases = [
        (
            "channels/a",
            json!({ "provider": "pigeon", "url": "https://a-path-that-is-secret" }),
            vec!["provider", "signing_key", "url"],
        ),
        ("channels/a", json!({ "provider": "slack", "url": "${PLAIN_URL}" }), vec!["url"]),
        ("channels/a", json!({ "provider": "slack", "url": "${NOT_SET}" }), vec!["url"]),
        ("channels/a", json!({ "provider": "log", "url": "${PLAIN_URL}" }), vec!["url"]),
        ("channels/Ä", json!({ "provider": "log" }), vec!["name"]),
        (
            "webhooks/a",
            json!({ "url": "${PLAIN_URL}", "more": 1 }),
            vec!["more", "signing_key", "url"],
        ),
        (
            "webhooks/a",
            json!({ "url": "${NOT_SET}", "signing_key": "${PLAIN_URL}",
                               "events": ["agent.status"] }),
            vec!["events", "url"],
        ),
    ];
    for (path, said, fields) in cases {
        let path = format!("{HERE}/{}", path.replace('Ä', "%C3%84"));
        let answer = api.send("PUT", &path, said.to_string()).await;
        answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert!(!answer.text().contains("a-path-that-is-secret"), "{}", answer.text());
        if said["url"] == "${NOT_SET}" {
            assert!(answer.text().contains("`narthex secrets set NOT_SET"), "{}", answer.text());
        }
        let answer = answer.json();
        let errors = answer["errors"].as_array().unwrap();
        let mut found: Vec<_> = errors.iter().map(|one| one["field"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, fields, "{said}");
    }
    let twice = r#"{"provider": "log", "provider": "log"}"#;
    let answer = api.send("PUT", &format!("{HERE}/channels/a"), twice).await;
    assert_eq!(answer.json()["errors"][0]["field"], "provider", "{}", answer.text());
    for path in ["channels/none", "webhooks/none", "webhooks/none/deliveries"] {
        let answer = api.ask("GET", &format!("{HERE}/{path}")).send().await;
        answer.problem(StatusCode::NOT_FOUND, "not_found");
    }
}

/// Requests, decisions and ends are sent in order and signed, each until it has arrived. Operators
/// can read their deliveries.
#[tokio::test]
async fn requests_decisions_and_ends_are_sent_in_order_until_they_arrive() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let mut receiver = Receiver::new([]).await;
    api.set_secret("OPS_URL", &receiver.url()).await;
    api.set_secret("OPS_KEY", KEY).await;
    let run = Run::of(&api, "writer").await;
    let webhook = json!({ "url": "${OPS_URL}", "signing_key": "${OPS_KEY}" }).to_string();
    let path = format!("{HERE}/webhooks/ops");
    let set = api.send("PUT", &path, webhook).await.succeeded();
    assert_eq!(set["events"].as_array().unwrap().len(), 6);
    api.outbound.start(Duration::from_millis(20));
    receiver.answers.lock().unwrap().push_back(500);
    run.called("emit_status", json!({ "status": "writing" })).await;
    let wanted = json!({
        "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "demo.write" }, "justification": "to write the report",
    });
    let asked = run.called("request_grant", wanted).await;
    let request = asked["grant_request_id"].as_str().unwrap();
    let first = receiver.next().await;
    assert!(first.is_signed(KEY), "{}", first.head);
    let decide = format!("{HERE}/grant-requests/{request}/approve");
    api.send("POST", &decide, "{}").await.succeeded();
    api.ask("DELETE", &format!("{HERE}/sessions/{}", run.session)).send().await;
    let mut told = vec![first];
    for _ in 0..3 {
        told.push(receiver.next().await);
    }
    let types: Vec<_> = told.iter().map(|one| one.body["type"].as_str().unwrap()).collect();
    let expected = [
        "agent.permission_request",
        "agent.permission_request",
        "permission.granted",
        "session.ended",
    ];
    assert_eq!(types, expected);
    assert!(told.iter().all(|one| one.is_signed(KEY)));
    let ids: Vec<_> = told.iter().map(|one| one.header("webhook-id")).collect();
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(told[1].body["payload"]["grant_request_id"], request);
    assert_eq!(
        (&told[1].body["workspace"], &told[1].body["session_id"]),
        (&json!("default"), &json!(run.session))
    );
    // The last outcome is stored shortly after the message has arrived.
    let log = loop {
        let log = api.get(&format!("{path}/deliveries")).await;
        if log["items"].as_array().unwrap().len() == 3 {
            break log;
        }
        tokio::task::yield_now().await;
    };
    let attempts: Vec<_> =
        log["items"].as_array().unwrap().iter().map(|one| &one["attempts"]).collect();
    assert_eq!(attempts, [1, 1, 2]);
    assert_eq!(
        api.get(&format!("{path}/deliveries?limit=1")).await["next"],
        log["items"][0]["number"].to_string()
    );
    assert_eq!(api.outbound.counts(), [3, 1, 0]);
    assert_eq!(api.ask("DELETE", &path).send().await.status, StatusCode::NO_CONTENT);
}

/// X-M56, X-M58: a request of the process's own run is sent to webhooks, is decided on its page,
/// and the decision reaches that run, as for any other.
#[tokio::test]
async fn x_m56_a_request_of_the_daemons_own_run_is_sent_to_webhooks_and_decided() {
    let site = Site::new().await;
    let mut receiver = Receiver::new([]).await;
    site.api.set_secret("OPS_URL", &receiver.url()).await;
    site.api.set_secret("OPS_KEY", KEY).await;
    let webhook = json!({ "url": "${OPS_URL}", "signing_key": "${OPS_KEY}" }).to_string();
    site.api.send("PUT", &format!("{HERE}/webhooks/ops"), webhook).await.succeeded();
    site.api.outbound.start(Duration::from_millis(20));
    let own = Run::own(&site.api);
    let wanted = json!({
        "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "demo.write" }, "justification": "to tidy up",
    });
    let asked = own.called("request_grant", wanted.clone()).await;
    let request = asked["grant_request_id"].as_str().unwrap();
    let told = receiver.next().await;
    assert!(told.is_signed(KEY), "{}", told.head);
    assert_eq!(told.body["type"], "agent.permission_request");
    assert_eq!(told.body["session_id"], own.session, "{}", told.body);
    assert_eq!(told.body["payload"]["grant_request_id"], request);

    let path = page_of(request);
    let mut ada = site.browser("ada").await;
    let page = look(&ada, &path).await;
    for part in ["to tidy up", "demo.write", "admin token"] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    // The end of this run is not stored, so no grant can last until then.
    let approve = format!("{HERE}/grant-requests/{request}/approve");
    let refused = site.api.send("POST", &approve, r#"{"scope": "run"}"#).await;
    let told = refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert!(told.contains("the run of the daemon itself"), "{told}");
    assert_eq!(decide(&mut ada, &path, "decision=approve&scope=run").await, 422);
    let for_a_run = json!({
        "request_id": "ask-2", "grant_type": "tool_scope", "scope": "run",
        "details": { "scope": "demo.write" }, "justification": "to tidy up",
    });
    assert_eq!(own.refused("request_grant", for_a_run).await["kind"], "invalid_arguments");
    assert_eq!(site.api.get(&format!("{HERE}/grants")).await["items"], json!([]));
    assert_eq!(decide(&mut ada, &path, "decision=approve&scope=session").await, 303);
    let told = receiver.next().await;
    assert_eq!(told.body["type"], "permission.granted");
    assert_eq!(told.body["payload"]["grant_request_id"], request, "{}", told.body);
    let again = own.called("request_grant", wanted).await;
    assert_eq!(again["status"], "approved", "{again}");
    let grants = site.api.get(&format!("{HERE}/grants")).await;
    assert_eq!(grants["items"][0]["user_subject_id"], "prn_0000000000000000", "{grants}");
}

/// D13, X-M3: a rule on a channel applies to every spelling of the channel's name. The message is
/// sent to the channel that the rule has checked.
#[tokio::test]
async fn d13_a_rule_on_a_channel_applies_to_every_spelling_of_its_name() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    for name in ["general", "notes"] {
        api.set_channel(name, json!({ "provider": "log" })).await;
    }
    let rule = r#"@id("quiet") forbid(principal, action, resource == Tool::"narthex/post_message")
        when { context.arguments has channel && context.arguments.channel == "general" };"#;
    let rules = json!({ "rules": rule }).to_string();
    api.send("PUT", &format!("{HERE}/policy"), rules).await.succeeded();
    let run = Run::of(&api, "writer").await;
    for spelling in [
        "general",
        "#general",
        "General",
        " general ",
        "# GENERAL",
        "##general",
        "# #general",
        "#\u{a0}#\t# general",
        "\u{a0}general\n",
    ] {
        let said = json!({ "channel": spelling, "text": "x" });
        let error = run.refused("post_message", said).await;
        assert_eq!(error["details"]["rule"], "quiet", "{spelling}: {error}");
        let asked = json!({ "server": "narthex", "tool": "post_message",
                            "arguments": { "channel": spelling, "text": "x" } });
        let path = format!("{HERE}/policy/check");
        let checked = api.send("POST", &path, asked.to_string()).await.succeeded();
        assert_eq!(checked["decision"], "forbidden", "{spelling}: {checked}");
    }
    // For another server's tool, each spelling may mean something else.
    let asked = json!({ "server": "narthex", "alias": "chat", "tool": "post_message",
                        "arguments": { "channel": "#general" },
                        "rules": rule.replace("narthex/", "chat/") });
    let path = format!("{HERE}/policy/check");
    let checked = api.send("POST", &path, asked.to_string()).await.succeeded();
    assert_eq!(checked["decision"], "allowed", "{checked}");
    // A text that is no spelling of a channel's name is an unknown channel.
    for unknown in ["gen eral", "#-#general", "g\u{200b}eneral", "ｇeneral"] {
        let said = json!({ "channel": unknown, "text": "x" });
        assert_eq!(run.called("post_message", said).await["error"], "channel_not_found");
    }
    let posted = run.called("post_message", json!({ "channel": "#Notes ", "text": "x" })).await;
    assert_eq!((&posted["ok"], &posted["channel"]), (&json!(true), &json!("notes")));
}

/// X-M3: each event is sent with the webhook's current settings: its address, key and kinds of
/// events. That holds even for events that are waiting already. A removed webhook gets no more
/// events.
#[tokio::test]
async fn settings_of_a_webhook_are_read_again_before_each_attempt() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let (mut first, mut second) = (Receiver::held().await, Receiver::new([]).await);
    for (name, value) in
        [("FIRST_URL", first.url()), ("SECOND_URL", second.url()), ("OPS_KEY", KEY.to_owned())]
    {
        api.set_secret(name, &value).await;
    }
    let run = Run::of(&api, "writer").await;
    let path = format!("{HERE}/webhooks/ops");
    let webhook = json!({ "url": "${FIRST_URL}", "signing_key": "${OPS_KEY}" }).to_string();
    api.send("PUT", &path, webhook).await.succeeded();
    let ask = async |number: u8| {
        let wanted = json!({
            "request_id": format!("ask-{number}"), "grant_type": "tool_scope", "scope": "session",
            "details": { "scope": format!("demo.write{number}") }, "justification": "x",
        });
        run.called("request_grant", wanted).await
    };
    let asked = ask(1).await;
    ask(2).await;
    api.ask("DELETE", &format!("{HERE}/sessions/{}", run.session)).send().await;
    api.outbound.start(Duration::from_millis(20));
    // The first attempt has started; its receiver answers after the settings have changed.
    let told = first.next().await;
    assert_eq!(told.body["payload"]["grant_request_id"], asked["grant_request_id"]);
    let webhook = json!({ "url": "${SECOND_URL}", "signing_key": "${OPS_KEY}",
                          "events": ["session.ended"] });
    api.send("PUT", &path, webhook.to_string()).await.succeeded();
    first.answer();
    let told = second.next().await;
    assert_eq!(told.body["type"], "session.ended", "{}", told.text);
    assert!(told.is_signed(KEY));
    let none = first.letters.try_recv().err();
    assert_eq!(none, Some(TryRecvError::Empty), "nothing more goes there");
}
