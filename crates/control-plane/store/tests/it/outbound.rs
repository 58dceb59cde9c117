//! Channels and webhooks, as stored.

use std::time::{Duration, SystemTime};

use narthex_model::{ChannelName, ErrorKind, SecretName};
use narthex_store::{ChannelRow, EventsOf, NewEvent, NewWebhook, Store, Told, WebhookRow};

use crate::{
    shares::{session, store},
    support::{Place, id},
};

fn name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

fn secret(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

/// X-M3.
#[tokio::test]
async fn channels_are_of_their_workspace() {
    for place in Place::both() {
        let store = store(&place).await;
        let row = |channel: &str, provider: &str, url: Option<&str>| ChannelRow {
            name: name(channel),
            provider: provider.to_owned(),
            url: url.map(secret),
            signing_key: None,
            updated_at: SystemTime::UNIX_EPOCH,
            updated_by: "ada".to_owned(),
        };
        let same =
            |found: &ChannelRow| ChannelRow { updated_at: SystemTime::UNIX_EPOCH, ..found.clone() };
        let (team, other) = (id("team"), id("other"));
        let chat = row("chat", "slack", Some("CHAT_URL"));
        store.channels().set(&team, &chat, "ada").await.unwrap();
        store.channels().set(&team, &row("z", "log", None), "ada").await.unwrap();
        store.channels().set(&other, &row("chat", "log", None), "ada").await.unwrap();
        let found = store.channels().find(&team, &name("chat")).await.unwrap().unwrap();
        assert_eq!(same(&found), chat);
        let plain = row("chat", "log", None);
        store.channels().set(&team, &plain, "ada").await.unwrap();
        let all = store.channels().all(&team).await.unwrap();
        assert_eq!(all.iter().map(same).collect::<Vec<_>>(), [plain, row("z", "log", None)]);
        assert!(store.channels().delete(&team, &name("chat")).await.unwrap());
        assert!(!store.channels().delete(&team, &name("chat")).await.unwrap());
        assert_eq!(store.channels().all(&other).await.unwrap().len(), 1);
        let nowhere = store.channels().set(&id("none"), &chat, "ada").await.unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::NotFound);
        store.close().await;
    }
}

/// One daemon at a time delivers to a webhook, event after event, and the outcome of each is
/// stored.
#[tokio::test]
async fn one_daemon_delivers_to_a_webhook_event_by_event() {
    for place in Place::both() {
        let store = store(&place).await;
        let of = EventsOf { workspace: id("team"), session: session() };
        for _ in 0..10 {
            let new = NewEvent {
                of: &of,
                run: None,
                kind: "session.ended",
                message_id: None,
                payload: "{}",
                happened_at: SystemTime::UNIX_EPOCH,
                turn: None,
                unread: None,
                owed: None,
                is_own: true,
            };
            store.events().append(&[new]).await.unwrap();
        }
        let (team, ops, url) = (id("team"), name("ops"), secret("OPS_URL"));
        let new = |position| NewWebhook {
            workspace: &team,
            name: &ops,
            url: &url,
            signing_key: &url,
            kinds: &["session.ended", "permission.granted"],
            position,
            by: "ada",
        };
        let only = async |now: u64| -> Option<WebhookRow> {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now);
            store.webhooks().due(now).await.unwrap().into_iter().next()
        };
        store.webhooks().set(new(4)).await.unwrap();
        let row = only(0).await.unwrap();
        assert_eq!((row.position, row.attempts, row.kinds.len()), (4, 0, 2));
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert!(store.webhooks().claim(&row, until).await.unwrap());
        assert!(!store.webhooks().claim(&row, until).await.unwrap(), "another claim holds it");
        assert_eq!(only(99).await, None);
        assert!(store.webhooks().put_off(&row, 1, until).await.unwrap());
        let row = only(100).await.unwrap();
        assert_eq!((row.position, row.attempts), (4, 1));
        let told = Told {
            number: 6,
            kind: "session.ended",
            outcome: "delivered",
            attempts: 2,
            detail: "",
        };
        assert!(store.webhooks().advance(&row, 6, Some(told)).await.unwrap());
        assert!(!store.webhooks().advance(&row, 6, Some(told)).await.unwrap(), "it is there");
        let row = only(0).await.unwrap();
        assert_eq!((row.position, row.attempts), (6, 0));
        assert!(store.webhooks().advance(&row, 10, None).await.unwrap());
        assert_eq!(only(0).await, None, "nothing has happened since");
        gives_up(&store, new(90)).await;
        let row = WebhookRow { position: 10, ..row };
        assert!(store.webhooks().advance(&row, 6, None).await.unwrap());
        let row = only(0).await.unwrap();
        let row = set_otherwise(&store, row, new(90)).await;
        let log = store.webhooks().deliveries(&team, &ops, u64::MAX, 9).await.unwrap();
        assert_eq!((log.len(), log[0].number, &*log[0].outcome), (1, 6, "delivered"));
        assert!(store.webhooks().deliveries(&team, &ops, 6, 9).await.unwrap().is_empty());
        assert!(store.webhooks().deliveries(&id("other"), &ops, 99, 9).await.unwrap().is_empty());
        assert!(store.webhooks().delete(&team, &ops).await.unwrap());
        assert!(store.webhooks().deliveries(&team, &ops, 99, 9).await.unwrap().is_empty());
        assert!(!store.webhooks().put_off(&row, 1, until).await.unwrap());
        store.close().await;
    }
}

/// A failing event is given up, except where the webhook was set anew during the last attempt, be
/// it to the same values.
async fn gives_up(store: &Store, new: NewWebhook<'_>) {
    let webhooks = store.webhooks();
    let spare = name("spare");
    let new = NewWebhook { name: &spare, position: 4, ..new };
    let now = async || webhooks.find(new.workspace, &spare).await.unwrap().unwrap();
    let told = Told {
        number: 5,
        kind: "session.ended",
        outcome: "given_up",
        attempts: 12,
        detail: "no answer",
    };
    webhooks.set(new).await.unwrap();
    assert!(webhooks.put_off(&now().await, 11, SystemTime::UNIX_EPOCH).await.unwrap());
    let row = now().await;
    webhooks.set(new).await.unwrap();
    assert!(!webhooks.give_up(&row, told).await.unwrap());
    assert_eq!((now().await.position, now().await.attempts), (4, 0));
    assert!(webhooks.put_off(&now().await, 11, SystemTime::UNIX_EPOCH).await.unwrap());
    assert!(webhooks.give_up(&now().await, told).await.unwrap());
    assert_eq!((now().await.position, now().await.attempts), (5, 0));
    let log = webhooks.deliveries(new.workspace, &spare, u64::MAX, 9).await.unwrap();
    assert_eq!((log.len(), &*log[0].outcome), (1, "given_up"));
    assert!(webhooks.delete(new.workspace, &spare).await.unwrap());
}

/// A webhook that is set anew keeps its position, and a daemon with the old settings sends nothing.
async fn set_otherwise(store: &Store, row: WebhookRow, new: NewWebhook<'_>) -> WebhookRow {
    let (other, webhooks) = (secret("OTHER_URL"), store.webhooks());
    webhooks.set(NewWebhook { url: &other, ..new }).await.unwrap();
    assert!(!webhooks.claim(&row, SystemTime::now()).await.unwrap());
    assert!(!webhooks.put_off(&row, 1, SystemTime::now()).await.unwrap());
    let told =
        |outcome| Told { number: 10, kind: "session.ended", outcome, attempts: 12, detail: "" };
    assert!(!webhooks.give_up(&row, told("given_up")).await.unwrap(), "it is tried anew");
    assert_eq!(webhooks.find(&id("other"), &row.name).await.unwrap(), None);
    let now = webhooks.find(&row.workspace, &row.name).await.unwrap().unwrap();
    assert_eq!((now.position, now.url.as_str()), (row.position, "OTHER_URL"));
    assert_eq!(webhooks.due(SystemTime::UNIX_EPOCH).await.unwrap(), std::slice::from_ref(&now));
    now
}
