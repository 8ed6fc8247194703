//! One tokenizer: read from a tokenizer.json and put into the state that training needs.
use std::collections::BTreeMap;
use std::str::FromStr;

use tokenizers::{ModelWrapper, PostProcessorWrapper, Tokenizer};

use crate::guard::{failure, Failure, DATA_LOSS, INVALID_ARGUMENT};
use crate::streaming::{self, Streaming};

/// Largest id that is believed. Real vocabularies have fewer than 300,000 entries; tables are sized by the
/// largest id.
const MAX_ID: u32 = (1 << 24) - 1;

pub struct Loaded {
    pub tokenizer: Tokenizer,
    /// Every id, with 1 for a special token and 0 for an ordinary one.
    pub ids: BTreeMap<u32, u32>,
    pub streaming: Streaming,
}

impl Loaded {
    pub fn from_json(json: &str) -> Result<Loaded, Failure> {
        let mut tokenizer = match Tokenizer::from_str(json) {
            Ok(tokenizer) => tokenizer,
            Err(error) => return failure(DATA_LOSS, error),
        };
        // What a text means must not depend on the lengths or the chance that some earlier program
        // configured.
        if tokenizer.with_truncation(None).is_err() {
            return failure(DATA_LOSS, "truncation cannot be switched off");
        }
        tokenizer.with_padding(None);
        if let ModelWrapper::BPE(bpe) = tokenizer.get_model() {
            if bpe.dropout.is_some() {
                let mut bpe = bpe.clone();
                bpe.dropout = None;
                tokenizer.with_model(ModelWrapper::BPE(bpe));
            }
        }
        if let Some(processor) = tokenizer.get_post_processor() {
            let mut processor = processor.clone();
            keep_offsets_whole(&mut processor);
            tokenizer.with_post_processor(Some(processor));
        }
        let ids = ids_of(&tokenizer)?;
        let streaming = streaming::of(&tokenizer);
        Ok(Loaded { tokenizer, ids, streaming })
    }

    /// Triples (id, begin, end), begin and end in bytes of `text`.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, Failure> {
        let encoding = match self.tokenizer.encode(text, add_special) {
            Ok(encoding) => encoding,
            Err(error) => return failure(INVALID_ARGUMENT, error),
        };
        let mut words = Vec::with_capacity(3 * encoding.len());
        for (id, (begin, end)) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
            words.extend([*id, *begin as u32, *end as u32]);
        }
        Ok(words)
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, Failure> {
        match self.tokenizer.decode(ids, skip_special) {
            Ok(text) => Ok(text),
            Err(error) => failure(INVALID_ARGUMENT, error),
        }
    }
}

/// A token " word" came from the space too. Post-processors may leave the space out of its range, which suits
/// the marking of answers in a text but not a loss mask.
fn keep_offsets_whole(processor: &mut PostProcessorWrapper) {
    match processor {
        PostProcessorWrapper::ByteLevel(it) => it.trim_offsets = false,
        PostProcessorWrapper::Roberta(it) => it.trim_offsets = false,
        PostProcessorWrapper::Sequence(it) => it.as_mut().iter_mut().for_each(keep_offsets_whole),
        PostProcessorWrapper::Bert(_) | PostProcessorWrapper::Template(_) => {}
    }
}

fn ids_of(tokenizer: &Tokenizer) -> Result<BTreeMap<u32, u32>, Failure> {
    let mut ids: BTreeMap<u32, u32> = tokenizer.get_vocab(false).into_values().map(|id| (id, 0)).collect();
    for (id, token) in tokenizer.get_added_tokens_decoder() {
        ids.insert(id, token.special as u32);
    }
    match ids.last_key_value() {
        None => failure(DATA_LOSS, "has no tokens"),
        Some((id, _)) if *id > MAX_ID => failure(DATA_LOSS, format!("token id {id} is over {MAX_ID}")),
        Some(_) => Ok(ids),
    }
}
