//! The tokenizer of llama2.c: characters (or bytes), then the adjacent pair whose joined token has
//! the best score is merged, until none is left. Token 1 begins a text, 2 ends it; bytes have
//! tokens 3 to 258.

use crate::LanguageError;
use std::collections::HashMap;

/// Tokens with scores.
pub struct ScoredTokenizer {
    tokens: Vec<(Vec<u8>, f32)>,
    numbers: HashMap<Vec<u8>, u32>,
}

const BEGIN: u32 = 1;
const END: u32 = 2;
const FIRST_BYTE: u32 = 3;

impl ScoredTokenizer {
    /// # Errors
    /// `File` with fewer tokens than there are bytes.
    pub fn new(tokens: Vec<(Vec<u8>, f32)>, place: &str) -> Result<Self, LanguageError> {
        if tokens.len() < FIRST_BYTE as usize + 256 {
            return Err(LanguageError::file(
                place,
                format!("{} tokens are too few: every byte needs one", tokens.len()),
            ));
        }
        let mut numbers = HashMap::new();
        for (number, (bytes, _)) in tokens.iter().enumerate() {
            numbers.entry(bytes.clone()).or_insert(number as u32);
        }
        Ok(Self { tokens, numbers })
    }

    pub(super) fn size(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn encode(&self, text: &str, begin: bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        if begin {
            tokens.push(BEGIN);
            // Sentencepiece puts a space before a text.
            if !text.is_empty() {
                tokens.extend(self.numbers.get(&b" "[..]));
            }
        }
        let first = usize::from(begin);
        let mut buffer = [0; 4];
        for c in text.chars() {
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            match self.numbers.get(bytes) {
                Some(number) => tokens.push(*number),
                None => tokens.extend(bytes.iter().map(|byte| u32::from(*byte) + FIRST_BYTE)),
            }
        }
        loop {
            let mut best: Option<(f32, usize, u32)> = None;
            for place in first..tokens.len().saturating_sub(1) {
                let mut joined = self.tokens[tokens[place] as usize].0.clone();
                joined.extend_from_slice(&self.tokens[tokens[place + 1] as usize].0);
                if let Some(number) = self.numbers.get(&joined) {
                    let score = self.tokens[*number as usize].1;
                    if best.is_none_or(|(most, _, _)| score > most) {
                        best = Some((score, place, *number));
                    }
                }
            }
            let Some((_, place, number)) = best else { return tokens };
            tokens[place] = number;
            tokens.remove(place + 1);
        }
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        let mut after_begin = false;
        for token in tokens {
            if *token == BEGIN || *token == END {
                after_begin = *token == BEGIN;
                continue;
            }
            let Some((text, _)) = self.tokens.get(*token as usize) else { continue };
            if (FIRST_BYTE..FIRST_BYTE + 256).contains(token) {
                bytes.push((*token - FIRST_BYTE) as u8);
            } else if after_begin && text.first() == Some(&b' ') {
                bytes.extend_from_slice(&text[1..]);
            } else {
                bytes.extend_from_slice(text);
            }
            after_begin = false;
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
