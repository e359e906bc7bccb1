//! Binary files in a patch: git's `GIT binary patch`, and the object ids that git requires with it.
//!
//! Each version is written completely: its length, then its compressed bytes in base 85, at most 52 bytes per line.

use miniz_oxide::deflate::compress_to_vec_zlib;
use sha1_smol::Sha1;

const ALPHABET: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
const LINE_BYTES: usize = 52;
const COMPRESSION: u8 = 6;

/// The object id of a file that does not exist.
pub const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// Returns the object id that git gives to these bytes.
pub fn object(bytes: &[u8]) -> String {
    let mut sha1 = Sha1::new();
    sha1.update(format!("blob {}\0", bytes.len()).as_bytes());
    sha1.update(bytes);
    sha1.digest().to_string()
}

/// Appends both versions: the one that `git apply` writes, and the one that `git apply -R` writes.
pub fn push(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    out.extend_from_slice(b"GIT binary patch\n");
    for bytes in [new, old] {
        out.extend_from_slice(format!("literal {}\n", bytes.len()).as_bytes());
        compress_to_vec_zlib(bytes, COMPRESSION).chunks(LINE_BYTES).for_each(|line| push_line(out, line));
        out.push(b'\n');
    }
}

/// Appends a line: its length as a letter, then five letters for each group of four bytes. A shorter group at the end
/// is padded with zeros.
fn push_line(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len() as u8;
    out.push(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 });
    for four in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..four.len()].copy_from_slice(four);
        let mut rest = u32::from_be_bytes(word);
        let mut letters = [0; 5];
        for letter in letters.iter_mut().rev() {
            *letter = ALPHABET[(rest % 85) as usize];
            rest /= 85;
        }
        out.extend_from_slice(&letters);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_names_of_git() {
        assert_eq!(object(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(object(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn nothing_is_written_as_git_writes_it() {
        let mut out = Vec::new();
        push_line(&mut out, &[0x78, 0x01, 0x03, 0, 0, 0, 0, 1]);
        assert_eq!(out, b"HcmV?d00001\n");
    }
}
