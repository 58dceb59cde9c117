//! A protected MCP server and its authorization server, for measurements of credentials.
//!
//! Prints one line of JSON: the addresses, an access token with its end, and a client that gets
//! further ones.

use narthex_testkit::authorization::{AuthMethod, AuthorizationFixture, ClientSettings, Settings};
use serde_json::json;

const CLIENT: &str = "load";
const SECRET: &str = "secret-of-measurements";
/// Lifetime of tokens in seconds: longer than a measurement.
const LIVES_S: u64 = 86_400;

#[expect(clippy::print_stdout, reason = "the program that starts it waits for this line")]
fn main() {
    let clients = vec![ClientSettings::confidential(CLIENT, SECRET, AuthMethod::Post)];
    let fixture = AuthorizationFixture::start(Settings {
        clients,
        access_lives_s: LIVES_S,
        ..Settings::default()
    });
    let given = fixture.give(0, CLIENT, &["mcp"]);
    let facts = json!({
        "url": fixture.url,
        "token_url": format!("{}/token", fixture.issuer(0)),
        "client_id": CLIENT,
        "client_secret": SECRET,
        "access_token": given["access_token"],
        "expires_at": fixture.now_s() + LIVES_S,
    });
    println!("{facts}");
    loop {
        std::thread::park();
    }
}
