//! The statements of both tables of definitions.

use crate::statement::Statement;

/// The statements of a table, whose rows belong to what stands in the column `$owner`, and in it to
/// a server.
macro_rules! statements {
    ($name:literal, $table:literal, $owner:literal) => {
        Statements {
            heads: Statement {
                name: concat!($name, ".heads"),
                sql: concat!(
                    "SELECT digest, kind, name, state, run, first_seen, last_seen, decided_at, \
                     decided_by FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 AND server = $2"
                ),
            },
            texts: Statement {
                name: concat!($name, ".texts"),
                sql: concat!(
                    "SELECT kind, name, text FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 \
                     AND server = $2 AND state IN ('pinned', 'accepted') \
                     ORDER BY decided_at DESC, first_seen DESC, digest"
                ),
            },
            unwanted: Statement {
                name: concat!($name, ".unwanted"),
                sql: concat!(
                    "SELECT kind, name, text FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 \
                     AND server = $2 AND state IN ('quarantined', 'rejected') \
                     ORDER BY state DESC, decided_at DESC, first_seen DESC, digest LIMIT $3"
                ),
            },
            find: Statement {
                name: concat!($name, ".find"),
                sql: concat!(
                    "SELECT digest, kind, name, state, run, first_seen, last_seen, decided_at, \
                     decided_by, text, why FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 \
                     AND server = $2 AND digest = $3"
                ),
            },
            other_tools: Statement {
                name: concat!($name, ".other_tools"),
                sql: concat!(
                    "SELECT server, name FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 \
                     AND server <> $2 AND kind = 'tool' AND state IN ('pinned', 'accepted')"
                ),
            },
            // Nothing, if it is there, or is to be pinned where another of its name is or was.
            add: Statement {
                name: concat!($name, ".add"),
                sql: concat!(
                    "INSERT INTO ",
                    $table,
                    " (",
                    $owner,
                    ", server, digest, kind, name, state, \
                     text, why, run, first_seen, last_seen, decided_at, decided_by) \
                     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, 0, '' \
                     WHERE $6 <> 'pinned' OR NOT EXISTS (SELECT 1 FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 AND server = $2 AND kind = $4 AND name = $5) \
                     ON CONFLICT DO NOTHING"
                ),
            },
            // All of a name that wait, but for the newest.
            forget: Statement {
                name: concat!($name, ".forget"),
                sql: concat!(
                    "DELETE FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 AND server = $2 AND kind = $3 AND name = $4 \
                     AND state = 'quarantined' AND digest NOT IN (SELECT digest FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 AND server = $2 AND kind = $3 AND name = $4 \
                     AND state = 'quarantined' ORDER BY first_seen DESC, digest LIMIT $5)"
                ),
            },
            seen: Statement {
                name: concat!($name, ".seen"),
                sql: concat!(
                    "UPDATE ",
                    $table,
                    " SET last_seen = $4 WHERE ",
                    $owner,
                    " = $1 \
                     AND server = $2 AND digest = $3 AND last_seen < $4"
                ),
            },
            accept: Statement {
                name: concat!($name, ".accept"),
                sql: concat!(
                    "UPDATE ",
                    $table,
                    " SET state = 'accepted', decided_at = $4, \
                     decided_by = $5 WHERE ",
                    $owner,
                    " = $1 AND server = $2 AND digest = $3 \
                     AND state IN ('quarantined', 'rejected')"
                ),
            },
            reject: Statement {
                name: concat!($name, ".reject"),
                sql: concat!(
                    "UPDATE ",
                    $table,
                    " SET state = 'rejected', decided_at = $4, \
                     decided_by = $5 WHERE ",
                    $owner,
                    " = $1 AND server = $2 AND digest = $3 \
                     AND state <> 'rejected'"
                ),
            },
        }
    };
}

pub(super) const CATALOG: Statements = statements!("definitions", "definitions", "workspace");
pub(super) const LIVE: Statements = statements!("live_definitions", "live_definitions", "place");
pub(super) const LIVE_DECIDED: Statement = Statement {
    name: "live_definitions.decided",
    sql: "SELECT server, CAST(SUM(decided_at * 2 + CASE state WHEN 'accepted' THEN 1 ELSE 0 END) \
          AS BIGINT) AS decided FROM live_definitions WHERE place = $1 GROUP BY server",
};

/// What is done with a table of definitions.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) heads: Statement,
    pub(super) texts: Statement,
    pub(super) unwanted: Statement,
    pub(super) find: Statement,
    pub(super) other_tools: Statement,
    pub(super) add: Statement,
    pub(super) forget: Statement,
    pub(super) seen: Statement,
    pub(super) accept: Statement,
    pub(super) reject: Statement,
}
