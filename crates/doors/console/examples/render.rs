//! Writes sample pages and the files that they load into a folder, to look at them.

use std::path::Path;

use narthex_console::{
    assets, html,
    pages::{kitchen_sink, server::sample_pages},
};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target/console".to_owned());
    let folder = Path::new(&folder);
    fs_err::create_dir_all(folder.join("assets"))?;
    for asset in assets::all() {
        fs_err::write(folder.join(asset.path.trim_start_matches('/')), asset.text)?;
    }
    fs_err::write(folder.join("kitchen-sink.html"), html(&kitchen_sink::page()))?;
    fs_err::write(folder.join("server.html"), html(&sample_pages::page("")))?;
    fs_err::write(
        folder.join("server-definitions.html"),
        html(&sample_pages::definitions_page("")),
    )?;
    let approvals = kitchen_sink::approvals::inbox_of("");
    fs_err::write(folder.join("approvals.html"), html(&approvals))?;
    let approval = kitchen_sink::approvals::request_of("");
    fs_err::write(folder.join("approval.html"), html(&approval))?;
    let grants = kitchen_sink::approvals::grants_of("");
    fs_err::write(folder.join("grants.html"), html(&grants))?;
    fs_err::write(folder.join("grant.html"), html(&kitchen_sink::approvals::grant_of("")))?;
    fs_err::write(folder.join("first-day.html"), html(&kitchen_sink::first_day()))
}
