//! Tokenizers and chat templates for sdk/text, behind the C face of `inlaid_text.h`.
//!
//! Every entry runs inside [`guard::guard`]: no panic and no failed allocation of this library reaches the
//! host.
#![feature(alloc_error_hook)]

mod buffers;
mod clock;
mod context;
mod filters;
mod generation;
mod guard;
mod memory;
mod methods;
mod python;
mod streaming;
mod template;
mod template_abi;
mod tojson;
mod tokenizer;
mod tokenizer_abi;

#[global_allocator]
static ALLOCATOR: memory::Accounted = memory::Accounted;
