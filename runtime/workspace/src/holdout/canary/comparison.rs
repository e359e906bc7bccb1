//! Comparison of texts by rolling windows of characters, without white space, control characters, quotes and
//! backslashes. Windows are compared by hash. Equal characters always have the same hash, so no match is missed.

/// Number of characters in a window.
pub(super) const WINDOW: usize = 24;
/// Number of characters in a wide window, for sentences of common words.
pub(super) const WIDE: usize = 40;
/// The base of the rolling hash: odd and large. A collision would only cause a false alarm.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
/// The base to the power of the length of a window and of a wide window.
const LEAVING: [u64; 2] = [power(WINDOW), power(WIDE)];

const fn power(of: usize) -> u64 {
    let (mut power, mut index) = (1_u64, 0);
    while index < of {
        power = power.wrapping_mul(BASE);
        index += 1;
    }
    power
}

/// A filter that drops the characters that are not compared.
#[derive(Debug, Default, Clone)]
pub(super) struct CharacterFilter {
    after_backslash: bool,
}

impl CharacterFilter {
    /// Returns true for a character that is compared. After a backslash, `n`, `r` and `t` count as white space.
    pub(super) fn passes(&mut self, letter: char) -> bool {
        let escaped = std::mem::replace(&mut self.after_backslash, letter == '\\');
        match letter {
            '\\' | '"' | '\'' | '`' => false,
            'n' | 'r' | 't' if escaped => false,
            other => !other.is_whitespace() && !other.is_control(),
        }
    }
}

/// The most recent compared characters, with the hashes of the windows that end with the last one.
#[derive(Debug, Clone)]
pub(super) struct RollingWindow {
    filter: CharacterFilter,
    last: [u32; WIDE],
    seen: usize,
    hashes: [u64; 2],
}

impl Default for RollingWindow {
    fn default() -> Self {
        Self { filter: CharacterFilter::default(), last: [0; WIDE], seen: 0, hashes: [0; 2] }
    }
}

impl RollingWindow {
    /// Adds the next character and calls `look` for each window that ends with it.
    pub(super) fn push<T>(&mut self, letter: char, mut look: impl FnMut(u64) -> Option<T>) -> Option<T> {
        if !self.filter.passes(letter) {
            return None;
        }
        let place = self.seen % WIDE;
        let leaving = [self.last[(place + WIDE - WINDOW) % WIDE], self.last[place]];
        self.last[place] = u32::from(letter);
        for (hash, (leaves, power)) in self.hashes.iter_mut().zip(leaving.into_iter().zip(LEAVING)) {
            *hash = step(*hash, letter).wrapping_sub(u64::from(leaves).wrapping_mul(power));
        }
        self.seen += 1;
        let narrow = (self.seen >= WINDOW).then(|| look(mixed(self.hashes[0]))).flatten();
        narrow.or_else(|| (self.seen >= WIDE).then(|| look(mixed(self.hashes[1]))).flatten())
    }
}

fn step(hash: u64, letter: char) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(u64::from(u32::from(letter)))
}

/// Mixes the bits of a hash, because hash tables use only some of them.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// Returns the hash of a window whose characters have passed the filter.
pub(super) fn hash_of(window: impl Iterator<Item = char>) -> u64 {
    mixed(window.fold(0, step))
}

/// Returns the number of leading bytes without a truncated character at the end.
pub(super) fn whole(bytes: &[u8]) -> usize {
    let cut = (1..=bytes.len().min(3)).find(|back| bytes[bytes.len() - back] >= 0xc0);
    let length = |first: u8| if first >= 0xf0 { 4 } else { 2 + usize::from(first >= 0xe0) };
    match cut {
        Some(back) if length(bytes[bytes.len() - back]) > back => bytes.len() - back,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(text: &str) -> Vec<u64> {
        let (mut rolling, mut hashes) = (RollingWindow::default(), Vec::new());
        text.chars().for_each(|letter| {
            rolling.push(letter, |hash| {
                hashes.push(hash);
                None::<()>
            });
        });
        hashes
    }

    #[test]
    fn a_window_has_one_hash_wherever_it_stands() {
        let window = "abcdefghijklmnopqrstuvwx";
        assert_eq!(hashes(window), [hash_of(window.chars())]);
        assert_eq!(hashes("a b\tc\"d\\\"e`f'g\\nhijklmnop\u{a0}qrs\u{0}tuvwx"), hashes(window));
        assert!(hashes("bacdefghijklmnopqrstuvwx") != hashes(window) && hashes(&window[..23]).is_empty());
        let wide = format!("{window}0123456789ABCDEF");
        let text = format!("{}{wide}", "ü \\n'zz\u{0}".repeat(50));
        assert_eq!(hashes(&text).last(), Some(&hash_of(wide.chars())));
        assert!(hashes(&text).contains(&hash_of(window.chars())));
    }

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        for text in ["a", "aä", "a€", "a🦀"] {
            for end in 1..=text.len() {
                let expected = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                assert_eq!(whole(&text.as_bytes()[..end]), expected, "{text} {end}");
            }
        }
        assert_eq!((whole(b""), whole(b"\xff\x80\x80\x80\x80"), whole(b"\x80\x80")), (0, 5, 2));
    }
}
