//! What every entry of the C face goes through: panics and refused allocations become a code and a message.
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use crate::buffers::Bytes;
use crate::memory::{self, Exhausted};

/// Codes of inlaid::Code (sdk/base/error.h).
pub const OK: i32 = 0;
pub const INVALID_ARGUMENT: i32 = 3;
pub const RESOURCE_EXHAUSTED: i32 = 8;
pub const INTERNAL: i32 = 13;
pub const DATA_LOSS: i32 = 15;

pub struct Failure {
    pub code: i32,
    pub message: String,
}

pub fn failure<T>(code: i32, message: impl ToString) -> Result<T, Failure> {
    Err(Failure { code, message: message.to_string() })
}

/// Runs `f` under a memory budget. On failure writes the message to `error`, which the caller frees.
///
/// The hooks are installed once, in this library's own copy of std: a caught panic would otherwise print to
/// standard error. The host's own Rust code, if any, has another std and keeps its hooks.
pub fn guard(budget: usize, error: *mut Bytes, f: impl FnOnce() -> Result<(), Failure>) -> i32 {
    static HOOKS: Once = Once::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        HOOKS.call_once(|| {
            std::panic::set_hook(Box::new(|_| {}));
            tokenizers::utils::parallelism::set_parallelism(false); // no pool of threads, ever
            std::alloc::set_alloc_error_hook(memory::on_refusal);
        });
        memory::with_budget(budget, f)
    }));
    let failed = match result {
        Ok(Ok(())) => return OK,
        Ok(Err(failed)) => failed,
        Err(payload) => Failure { code: code_of(&*payload), message: message_of(&*payload) },
    };
    if !error.is_null() {
        // SAFETY: the caller passes null or a place for one Bytes.
        unsafe { *error = Bytes::from_string(failed.message) };
    }
    failed.code
}

fn code_of(payload: &(dyn std::any::Any + Send)) -> i32 {
    if payload.is::<Exhausted>() {
        RESOURCE_EXHAUSTED
    } else {
        INTERNAL
    }
}

fn message_of(payload: &(dyn std::any::Any + Send)) -> String {
    if payload.is::<Exhausted>() {
        return "needs more memory than a call may take".into();
    }
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic without a message".into())
}
