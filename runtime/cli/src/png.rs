//! PNG from pixels: signature, header, one stream of compressed rows, end. What the format needs and nothing it allows.

use glovebox_drawing::Image;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Eight bits for each of three colours; no palette, no interlacing.
const COLOURS: [u8; 5] = [8, 2, 0, 0, 0];
/// Every byte of a row is written as its difference from the one above.
const FILTER_UP: u8 = 2;
/// How hard the compressor tries, 0 to 10.
const EFFORT: u8 = 6;

/// Writes an image as PNG.
pub fn encode(image: &Image) -> Vec<u8> {
    let mut file = SIGNATURE.to_vec();
    let mut header = Vec::with_capacity(13);
    header.extend(image.width.to_be_bytes());
    header.extend(image.height.to_be_bytes());
    header.extend(COLOURS);
    chunk(&mut file, *b"IHDR", &header);
    chunk(&mut file, *b"IDAT", &miniz_oxide::deflate::compress_to_vec_zlib(&filtered(image), EFFORT));
    chunk(&mut file, *b"IEND", &[]);
    file
}

/// The rows with their filter.
fn filtered(image: &Image) -> Vec<u8> {
    let row_bytes = image.width as usize * 3;
    let mut filtered = Vec::with_capacity(image.bytes.len() + image.height as usize);
    let mut above = vec![0; row_bytes];
    for row in image.bytes.chunks_exact(row_bytes) {
        filtered.push(FILTER_UP);
        filtered.extend(row.iter().zip(&above).map(|(byte, above): (&u8, &u8)| byte.wrapping_sub(*above)));
        above.copy_from_slice(row);
    }
    filtered
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(content);
    let sum = checksum(&file[start..]);
    file.extend(sum.to_be_bytes());
}

/// CRC-32 as PNG wants it (ISO 3309).
fn checksum(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let table: [u32; 256] = std::array::from_fn(|index| {
        (0..8).fold(index as u32, |value, _| if value & 1 == 1 { POLYNOMIAL ^ (value >> 1) } else { value >> 1 })
    });
    !bytes.iter().fold(!0, |sum, byte| table[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let bytes: Vec<u8> = (0..2 * 3 * 3).map(|byte| byte * 7).collect();
        let image = Image { width: 2, height: 3, bytes, absent: 0 };
        let file = encode(&image);
        assert_eq!(&file[..16], b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR");
        let length = u32::from_be_bytes([file[33], file[34], file[35], file[36]]) as usize;
        assert_eq!(&file[37..41], b"IDAT");
        let rows = miniz_oxide::inflate::decompress_to_vec_zlib(&file[41..41 + length]).unwrap();
        let mut back = vec![0_u8; 6];
        let mut all: Vec<u8> = Vec::new();
        for row in rows.chunks_exact(7) {
            back.iter_mut().zip(&row[1..]).for_each(|(above, byte)| *above = above.wrapping_add(*byte));
            all.extend(&back);
        }
        assert_eq!(all, image.bytes);
    }
}
