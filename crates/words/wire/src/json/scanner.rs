//! The cursor that walks JSON text. It checks grammar and depth, and stores nothing.

use super::{DEPTH_MAX, JsonError, Member, Members, Object, Span, check_keys_unless_plain};

/// A cursor over JSON text. The text must be UTF-8 (see [`super::check_utf8`]).
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a [u8],
    pos: usize,
    depth: u32,
    has_escaped_keys: bool,
}

impl<'a> Scanner<'a> {
    /// Starts at byte `pos` of `text`, `depth` levels deep.
    #[must_use]
    pub fn new(text: &'a [u8], pos: usize, depth: u32) -> Self {
        Self { text, pos, depth, has_escaped_keys: false }
    }

    /// True if any key so far, at any depth, was written with an escape.
    #[must_use]
    pub fn has_escaped_keys(&self) -> bool {
        self.has_escaped_keys
    }

    #[cold]
    fn error<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax { at: self.pos })
    }

    /// Returns the next byte that is not white space, without consuming it.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(&b) = self.text.get(self.pos) {
            if !matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(b);
            }
            self.pos += 1;
        }
        None
    }

    /// The scanner's byte position.
    #[must_use]
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    /// When another byte follows.
    pub fn finish(&mut self) -> Result<(), JsonError> {
        if self.peek().is_none() { Ok(()) } else { self.error() }
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.pos += 1;
            return Ok(());
        }
        self.error()
    }

    fn span(&self, start: usize) -> Span {
        // Sizes are limited to far below 4 GiB before a scanner sees the text.
        let cut = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { start: cut(start), end: cut(self.pos) }
    }

    /// Consumes one value of any kind, and returns its span.
    ///
    /// # Errors
    /// When the text is no JSON or too deep.
    pub fn value(&mut self) -> Result<Span, JsonError> {
        let first = self.peek();
        let start = self.pos;
        match first {
            Some(b'{' | b'[') => self.skip_value()?,
            Some(first) => self.scalar(first)?,
            None => return self.error(),
        }
        Ok(self.span(start))
    }

    /// Consumes one object and lists its members; values are checked but not opened.
    ///
    /// # Errors
    /// When the text is no object, no JSON, too deep, or has a key twice.
    pub fn object(&mut self) -> Result<Object, JsonError> {
        self.object_of(usize::MAX)
    }

    /// As [`Scanner::object`], for an object with at most `most` members. Reading stops at the
    /// first member above `most`.
    ///
    /// # Errors
    /// The errors of [`Scanner::object`], and [`JsonError::TooManyMembers`].
    pub fn object_of(&mut self, most: usize) -> Result<Object, JsonError> {
        let mut members = Members::new();
        let span = self.object_with(|scanner, key| {
            let value = scanner.value()?;
            if members.len() >= most {
                return Err(JsonError::TooManyMembers { most });
            }
            members.push(Member { key, value });
            Ok(())
        })?;
        check_keys_unless_plain(self.text, &members, !self.has_escaped_keys)?;
        Ok(Object { span, members })
    }

    /// Consumes one object, and calls `member` at each key. `member` must consume the value.
    ///
    /// # Errors
    /// Faults of the text, and the errors of `member`.
    pub fn object_with(
        &mut self,
        mut member: impl FnMut(&mut Self, Span) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        self.expect(b'{')?;
        let start = self.pos - 1;
        self.enter()?;
        if self.peek() == Some(b'}') {
            self.pos += 1;
        } else {
            loop {
                let key = self.key()?;
                member(self, key)?;
                match self.peek() {
                    Some(b',') => self.pos += 1,
                    Some(b'}') => break self.pos += 1,
                    _ => return self.error(),
                }
            }
        }
        self.depth -= 1;
        Ok(self.span(start))
    }

    /// Consumes one array, and calls `item` with the span of each element.
    ///
    /// # Errors
    /// When the text is no array, no JSON, or too deep.
    pub fn array(&mut self, mut item: impl FnMut(Span)) -> Result<Span, JsonError> {
        self.array_with(|span| {
            item(span);
            Ok(())
        })
    }

    /// As [`Scanner::array`], until `item` fails.
    ///
    /// # Errors
    /// The errors of [`Scanner::array`], and the errors of `item`.
    pub fn array_with(
        &mut self,
        mut item: impl FnMut(Span) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        self.expect(b'[')?;
        let start = self.pos - 1;
        self.enter()?;
        if self.peek() == Some(b']') {
            self.pos += 1;
        } else {
            loop {
                item(self.value()?)?;
                match self.peek() {
                    Some(b',') => self.pos += 1,
                    Some(b']') => break self.pos += 1,
                    _ => return self.error(),
                }
            }
        }
        self.depth -= 1;
        Ok(self.span(start))
    }

    fn enter(&mut self) -> Result<(), JsonError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(JsonError::TooDeep) } else { Ok(()) }
    }

    fn key(&mut self) -> Result<Span, JsonError> {
        if self.peek() != Some(b'"') {
            return self.error();
        }
        let start = self.pos;
        self.has_escaped_keys |= self.string()?;
        let key = self.span(start);
        self.expect(b':')?;
        Ok(key)
    }

    /// Skips a value without recursion; one bit of `kinds` per open container, 1 = object.
    fn skip_value(&mut self) -> Result<(), JsonError> {
        let floor = self.depth;
        let mut kinds: u128 = 0;
        loop {
            let is_open = match self.peek() {
                Some(b'{') => self.open(&mut kinds, true)?,
                Some(b'[') => self.open(&mut kinds, false)?,
                Some(first) => self.scalar(first).map(|()| false)?,
                None => return self.error(),
            };
            if !is_open && self.close(&mut kinds, floor)? {
                return Ok(());
            }
        }
    }

    /// Takes a value that is no container; `first` is its first byte.
    fn scalar(&mut self, first: u8) -> Result<(), JsonError> {
        match first {
            b'"' => self.string().map(drop),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.error(),
        }
    }

    /// Opens a container; `false` if it was empty and is already closed.
    fn open(&mut self, kinds: &mut u128, is_object: bool) -> Result<bool, JsonError> {
        self.pos += 1;
        let end = if is_object { b'}' } else { b']' };
        self.enter()?;
        if self.peek() == Some(end) {
            self.pos += 1;
            self.depth -= 1;
            return Ok(false);
        }
        *kinds = *kinds << 1 | u128::from(is_object);
        if is_object {
            self.key()?;
        }
        Ok(true)
    }

    /// After a complete value: takes separators and closing brackets; `true` at the floor.
    fn close(&mut self, kinds: &mut u128, floor: u32) -> Result<bool, JsonError> {
        while self.depth > floor {
            let is_object = *kinds & 1 == 1;
            match self.peek() {
                Some(b',') => {
                    self.pos += 1;
                    if is_object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if is_object => self.pos += 1,
                Some(b']') if !is_object => self.pos += 1,
                _ => return self.error(),
            }
            self.depth -= 1;
            *kinds >>= 1;
        }
        Ok(true)
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if self.text[self.pos..].starts_with(word) {
            self.pos += word.len();
            return Ok(());
        }
        self.error()
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.pos;
        while self.text.get(self.pos).is_some_and(u8::is_ascii_digit) {
            self.pos += 1;
        }
        if self.pos == start { self.error() } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.text.get(self.pos) == Some(&b'-') {
            self.pos += 1;
        }
        if self.text.get(self.pos) == Some(&b'0') {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if self.text.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.pos), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.text.get(self.pos), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Takes a string; whether it has escapes.
    fn string(&mut self) -> Result<bool, JsonError> {
        self.pos += 1;
        let mut has_escapes = false;
        loop {
            self.pos += plain_run(&self.text[self.pos..]);
            match self.text.get(self.pos) {
                Some(b'"') => break self.pos += 1,
                Some(b'\\') => self.escape()?,
                _ => return self.error(),
            }
            has_escapes = true;
        }
        Ok(has_escapes)
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let length = match self.text.get(self.pos + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = self.text.get(self.pos + 2..self.pos + 6);
                if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    return self.error();
                }
                6
            }
            _ => return self.error(),
        };
        self.pos += length;
        Ok(())
    }
}

/// Number of the next bytes that are neither quote, backslash nor control character.
pub(super) fn plain_run(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let has_zero = |v: u64| v.wrapping_sub(ONES) & !v & HIGH;
    let mut chunks = text.chunks_exact(8);
    let mut run = 0;
    for chunk in chunks.by_ref() {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        let quote = has_zero(word ^ (ONES * u64::from(b'"')));
        let backslash = has_zero(word ^ (ONES * u64::from(b'\\')));
        // A byte below 0x20 has none of its three upper bits set.
        let control = has_zero(word & (ONES * 0xe0));
        let stop = quote | backslash | control;
        if stop != 0 {
            return run + stop.trailing_zeros() as usize / 8;
        }
        run += 8;
    }
    let is_plain = |b: &&u8| !matches!(**b, b'"' | b'\\' | 0..=0x1f);
    run + chunks.remainder().iter().take_while(is_plain).count()
}
