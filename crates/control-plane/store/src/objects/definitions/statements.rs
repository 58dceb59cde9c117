//! The statements of both tables of definitions.

use crate::statement::Statement;

/// Changes the definition `$3`, where `$if` holds.
macro_rules! update {
    ($table:literal, $verb:literal, $at:literal, $set:literal, $if:literal) => {
        Statement {
            name: concat!($table, $verb),
            sql: concat!("UPDATE ", $table, " SET ", $set, $at, " AND digest = $3 AND ", $if),
        }
    };
}

/// The statements of a table. Its rows belong to an owner in the column `$owner` and, within it, to
/// a server: `$at` is the condition that finds these rows.
macro_rules! statements {
    ($table:literal, $owner:literal, $at:literal) => {
        Statements {
            heads: Statement {
                name: concat!($table, ".heads"),
                sql: concat!(
                    "SELECT digest, kind, name, state, run, first_seen, last_seen, decided_at, \
                     decided_by FROM ",
                    $table,
                    $at
                ),
            },
            texts: Statement {
                name: concat!($table, ".texts"),
                sql: concat!(
                    "SELECT kind, name, text FROM ",
                    $table,
                    $at,
                    " AND state IN ('pinned', 'accepted') \
                     ORDER BY decided_at DESC, first_seen DESC, digest"
                ),
            },
            unwanted: Statement {
                name: concat!($table, ".unwanted"),
                sql: concat!(
                    "SELECT kind, name, text FROM ",
                    $table,
                    $at,
                    " AND state IN ('quarantined', 'rejected') \
                     ORDER BY state DESC, decided_at DESC, first_seen DESC, digest LIMIT $3"
                ),
            },
            find: Statement {
                name: concat!($table, ".find"),
                sql: concat!(
                    "SELECT digest, kind, name, state, run, first_seen, last_seen, decided_at, \
                     decided_by, text, why FROM ",
                    $table,
                    $at,
                    " AND digest = $3"
                ),
            },
            // `$3` has a comma before and after each digest.
            some: Statement {
                name: concat!($table, ".some"),
                sql: concat!(
                    "SELECT digest, kind, name, state, run, first_seen, last_seen, decided_at, \
                     decided_by, text, why FROM ",
                    $table,
                    $at,
                    " AND $3 LIKE '%,' || digest || ',%'"
                ),
            },
            other_tools: Statement {
                name: concat!($table, ".other_tools"),
                sql: concat!(
                    "SELECT DISTINCT server, name FROM ",
                    $table,
                    " WHERE ",
                    $owner,
                    " = $1 AND server <> $2 AND kind = 'tool' AND state <> 'rejected'"
                ),
            },
            // Adds nothing if the definition exists, or if it is to be pinned and the table has
            // another definition of its name.
            add: Statement {
                name: concat!($table, ".add"),
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
                    $at,
                    " AND kind = $4 AND name = $5) ON CONFLICT DO NOTHING"
                ),
            },
            // All of a name that wait, but for the newest.
            forget: Statement {
                name: concat!($table, ".forget"),
                sql: concat!(
                    "DELETE FROM ",
                    $table,
                    $at,
                    " AND kind = $3 AND name = $4 AND state = 'quarantined' \
                     AND digest NOT IN (SELECT digest FROM ",
                    $table,
                    $at,
                    " AND kind = $3 AND name = $4 \
                     AND state = 'quarantined' ORDER BY first_seen DESC, digest LIMIT $5)"
                ),
            },
            seen: update!($table, ".seen", $at, "last_seen = $4", "last_seen < $4"),
            // Skips definitions that a human has decided on.
            doubt: update!(
                $table,
                ".doubt",
                $at,
                "state = 'quarantined', why = $4",
                "state = 'pinned'"
            ),
            accept: update!(
                $table,
                ".accept",
                $at,
                "state = 'accepted', decided_at = $4, decided_by = $5",
                "state IN ('quarantined', 'rejected')"
            ),
            reject: update!(
                $table,
                ".reject",
                $at,
                "state = 'rejected', decided_at = $4, decided_by = $5",
                "state <> 'rejected'"
            ),
        }
    };
}

pub(super) const CATALOG: Statements =
    statements!("definitions", "workspace", " WHERE workspace = $1 AND server = $2");
pub(super) const LIVE: Statements =
    statements!("live_definitions", "place", " WHERE place = $1 AND server = $2");
/// A number that changes whenever a human decides on a definition, or one is put under review.
pub(crate) const LIVE_DECIDED: Statement = Statement {
    name: "live_definitions.decided",
    sql: "SELECT server, CAST(SUM(decided_at * 2 + CASE state WHEN 'accepted' THEN 1 \
          WHEN 'quarantined' THEN 3 ELSE 0 END) AS BIGINT) AS number \
          FROM live_definitions WHERE place = $1 GROUP BY server",
};
/// A number that changes whenever other tools have names.
pub(crate) const CATALOG_NAMED: Statement = Statement {
    name: "definitions.named",
    sql: "SELECT '' AS server, CAST(COALESCE(SUM(first_seen), 0) AS BIGINT) AS number \
          FROM definitions WHERE workspace = $1 AND kind = 'tool' AND state <> 'rejected'",
};

/// The statements that read and change a table of definitions.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) heads: Statement,
    pub(super) texts: Statement,
    pub(super) unwanted: Statement,
    pub(super) find: Statement,
    pub(super) some: Statement,
    pub(super) other_tools: Statement,
    pub(super) add: Statement,
    pub(super) forget: Statement,
    pub(super) seen: Statement,
    pub(super) doubt: Statement,
    pub(super) accept: Statement,
    pub(super) reject: Statement,
}
