//! `{% generation %}` blocks, which transformers adds to Jinja and minijinja does not know.
//!
//! The source is rewritten before parsing. `{%- generation %}` becomes `{%- with %}{{ __generation_begin__
//! }}{% set __generation__ = 1 %}`, `{% endgeneration -%}` becomes `{% set __generation__ = 0 %}{{
//! __generation_end__ }}{% endwith -%}`: the scope of a block stays, the first tag carries the white space
//! control of the left side and the last one that of the right side, and no line is added, so that error
//! lines hold. The two variables are undefined and print nothing unless a render wants marks.
//! Tested by the templates with marks in sdk/text/chat_template_test.cc.

pub const BEGIN: &str = "__generation_begin__";
pub const END: &str = "__generation_end__";

pub struct Rewritten {
    pub source: String,
    pub blocks: usize,
}

/// Err with a line (from 1) and the reason when blocks are not balanced.
pub fn rewrite(source: &str) -> Result<Rewritten, (usize, String)> {
    let mut out = String::with_capacity(source.len());
    let mut open: Vec<usize> = Vec::new(); // positions of blocks not yet closed
    let mut blocks = 0;
    let mut at = 0;
    while let Some(found) = source[at..].find('{').map(|n| at + n) {
        out.push_str(&source[at..found]);
        let rest = &source[found..];
        let end = found
            + match rest.as_bytes().get(1) {
                Some(b'#') => rest.find("#}").map_or(rest.len(), |n| n + 2),
                Some(b'{') => code_end(rest, "}}"),
                Some(b'%') => tag_end(rest),
                _ => 1,
            };
        let tag = &source[found..end];
        match generation_tag(tag) {
            Some((left, "generation", right)) => {
                open.push(found);
                blocks += 1;
                out.push_str(&format!(
                    "{{%{left} with %}}{{{{ {BEGIN} }}}}{{% set __generation__ = 1 {right}%}}"
                ));
            }
            Some((left, _, right)) => {
                if open.pop().is_none() {
                    return Err((line_of(source, found), "endgeneration without generation".into()));
                }
                out.push_str(&format!(
                    "{{%{left} set __generation__ = 0 %}}{{{{ {END} }}}}{{% endwith {right}%}}"
                ));
            }
            None => out.push_str(tag),
        }
        at = end;
    }
    out.push_str(&source[at..]);
    match open.pop() {
        Some(begin) => Err((line_of(source, begin), "generation is not closed by endgeneration".into())),
        None => Ok(Rewritten { source: out, blocks }),
    }
}

fn line_of(source: &str, at: usize) -> usize {
    source[..at].matches('\n').count() + 1
}

/// (left control, name, right control) of a tag with one of the two names.
fn generation_tag(tag: &str) -> Option<(&str, &str, &str)> {
    let inside = tag.strip_prefix("{%")?.strip_suffix("%}")?;
    let (left, inside) = match inside.strip_prefix(['-', '+']) {
        Some(rest) => (&tag[2..3], rest),
        None => ("", inside),
    };
    let (right, inside) = match inside.strip_suffix(['-', '+']) {
        Some(rest) => (&tag[tag.len() - 3..tag.len() - 2], rest),
        None => ("", inside),
    };
    let name = inside.trim();
    matches!(name, "generation" | "endgeneration").then_some((left, name, right))
}

/// Length of the tag at the start of `text`; for `{% raw %}` up to the end of its `{% endraw %}`.
fn tag_end(text: &str) -> usize {
    let end = code_end(text, "%}");
    if word(&text[..end]) != "raw" {
        return end;
    }
    let mut at = end;
    while let Some(next) = text[at..].find("{%").map(|n| at + n) {
        let tag = &text[next..];
        let close = tag.find("%}").map_or(tag.len(), |n| n + 2);
        if word(&tag[..close]) == "endraw" {
            return next + close;
        }
        at = next + 2;
    }
    text.len()
}

fn word(tag: &str) -> &str {
    tag.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim()
}

/// Length of the code at the start of `text` up to the end of `close`, passing over strings and brackets.
fn code_end(text: &str, close: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (2, 0usize);
    while at < bytes.len() {
        if depth == 0 && text.as_bytes()[at..].starts_with(close.as_bytes()) {
            return at + 2;
        }
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}
