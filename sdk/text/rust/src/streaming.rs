//! Whether a decoder may be run on a growing sequence: the text of the first n tokens must be the beginning
//! of the text of more of them, up to an unfinished character.
use serde_json::Value as Json;
use tokenizers::Tokenizer;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Streaming {
    /// Give the text out only at the end.
    WholeOnly = 0,
    Steps = 1,
    /// Inside a run of byte tokens nothing is final.
    StepsOutsideBytes = 2,
}

pub fn of(tokenizer: &Tokenizer) -> Streaming {
    match tokenizer.get_decoder() {
        None => Streaming::Steps, // tokens joined by spaces
        Some(decoder) => serde_json::to_value(decoder).map_or(Streaming::WholeOnly, |json| of_decoder(&json)),
    }
}

fn of_decoder(decoder: &Json) -> Streaming {
    match decoder["type"].as_str() {
        Some("ByteLevel" | "WordPiece" | "Metaspace" | "BPEDecoder" | "Fuse") => Streaming::Steps,
        Some("ByteFallback") => Streaming::StepsOutsideBytes,
        // Stripping at the end would take back what was given out; stripping more than one character at the
        // start could reach behind the first token of a window.
        Some("Strip") if decoder["stop"] == 0 && decoder["start"].as_u64().is_some_and(|n| n <= 1) => {
            Streaming::Steps
        }
        // A pattern of one character never straddles two tokens.
        Some("Replace") if is_one_character(&decoder["pattern"]["String"]) => Streaming::Steps,
        Some("Sequence") => match decoder["decoders"].as_array() {
            Some(parts) => {
                let kinds: Vec<Streaming> = parts.iter().map(of_decoder).collect();
                if kinds.contains(&Streaming::WholeOnly) {
                    Streaming::WholeOnly
                } else {
                    kinds.into_iter().max().unwrap_or(Streaming::Steps)
                }
            }
            None => Streaming::WholeOnly,
        },
        _ => Streaming::WholeOnly,
    }
}

fn is_one_character(pattern: &Json) -> bool {
    pattern.as_str().is_some_and(|text| text.chars().count() == 1)
}
