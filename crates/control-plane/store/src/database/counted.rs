//! Names of the statements that a piece of work runs, for tests of its cost.

use std::cell::RefCell;

use crate::database::statement::Statement;

tokio::task_local! {
    static NAMES: RefCell<Vec<&'static str>>;
}

/// Does work, and also returns the names of the statements that it has run, in their order.
/// Statements of other tasks are not among them.
pub async fn statements_of<T>(work: impl Future<Output = T>) -> (T, Vec<&'static str>) {
    let named = async {
        let done = work.await;
        (done, NAMES.with(RefCell::take))
    };
    NAMES.scope(RefCell::default(), named).await
}

/// Notes that a statement is about to run. Without a [`statements_of`] around, nothing is noted.
pub(super) fn note(statement: Statement) {
    NAMES.try_with(|names| names.borrow_mut().push(statement.name)).ok();
}
