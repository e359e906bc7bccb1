//! CharSet as strokes: a small face of our own, so that pixels need no font file and look the same on every machine.
//!
//! A glyph is lines over points in twentieths of the font's size, the baseline at 0; `~` before a point makes it the control point of a curve.
//! Its width is not in it: a glyph stands in the middle of the place that the table of widths gives it.

use crate::geometry::{Path, Point, Step, at};

/// Units for each font size.
const UNITS: f64 = 20.0;

/// The glyphs of `!` to `~`.
const ASCII: [&str; 94] = [
    "0,14 0,4.6;0,.4 0,0",
    "0,14 0,9.6;3,14 3,9.6",
    "2.6,0 4.4,14;6.4,0 8.2,14;.6,9.4 9.4,9.4;0,4.6 8.8,4.6",
    "7.4,10.6 ~6.8,12.8 3.9,12.8 ~.4,12.8 .4,9.8 ~.4,7.7 3.9,7 ~7.8,6.2 7.8,3.6 ~7.8,1 3.9,1 ~.6,1 0,3.6;3.9,15 3.9,-1.2",
    "3,14 ~0,14 0,10.6 ~0,7.2 3,7.2 ~6,7.2 6,10.6 ~6,14 3,14;11,6.8 ~8,6.8 8,3.4 ~8,0 11,0 ~14,0 14,3.4 ~14,6.8 11,6.8;11.2,14 2.8,0",
    "10.6,0 3,9.2 ~1.6,11 1.6,11.8 ~1.6,14 4,14 ~6.4,14 6.4,11.6 ~6.4,9.4 3.6,7.8 ~0,6 0,3.2 ~0,0 3.8,0 ~8,0 9.4,6",
    "0,14 0,9.6",
    "3,15 ~0,11 0,5.4 ~0,-.4 3,-4",
    "0,15 ~3,11 3,5.4 ~3,-.4 0,-4",
    "2.6,14 2.6,8.6;.2,12.6 5,10;5,12.6 .2,10",
    "4.4,10 4.4,1.4;0,5.7 8.8,5.7",
    ".8,.6 .8,0 ~.8,-1.6 -.2,-2.6",
    "0,5 3.6,5",
    "0,.4 0,0",
    "0,-.4 4.6,14.4",
    "3.9,14 ~0,14 0,7 ~0,0 3.9,0 ~7.8,0 7.8,7 ~7.8,14 3.9,14",
    ".6,11 4,14 4,0",
    ".2,10.6 ~.4,14 4,14 ~7.6,14 7.6,10.4 ~7.6,8 4,4.8 ~.4,2 0,0 7.8,0",
    ".2,11 ~.8,14 3.8,14 ~7.2,14 7.2,10.6 ~7.2,7.4 3.4,7.4;3.4,7.4 ~7.8,7.4 7.8,3.8 ~7.8,0 3.8,0 ~.4,0 0,3.4",
    "6,0 6,14 0,4.2 8.2,4.2",
    "7.2,14 1.2,14 .6,7.4 ~2,8.8 4.2,8.8 ~7.8,8.8 7.8,4.5 ~7.8,0 3.8,0 ~.6,0 0,3",
    "7.2,11.4 ~6.6,14 4.2,14 ~0,14 0,6 ~0,0 4,0 ~7.8,0 7.8,4.4 ~7.8,8.6 4.2,8.6 ~.6,8.6 0,4.8",
    "0,14 7.8,14 ~3.4,8 2.8,0",
    "3.9,7.4 ~.6,7.4 .6,10.7 ~.6,14 3.9,14 ~7.2,14 7.2,10.7 ~7.2,7.4 3.9,7.4 ~0,7.4 0,3.7 ~0,0 3.9,0 ~7.8,0 7.8,3.7 ~7.8,7.4 3.9,7.4",
    ".6,2.6 ~1.2,0 3.6,0 ~7.8,0 7.8,8 ~7.8,14 3.8,14 ~0,14 0,9.6 ~0,5.4 3.6,5.4 ~7.2,5.4 7.8,9.2",
    "0,9.4 0,9;0,.4 0,0",
    ".8,9.4 .8,9;.8,.6 .8,0 ~.8,-1.6 -.2,-2.6",
    "8.6,10 0,5.7 8.6,1.4",
    "0,7.8 8.8,7.8;0,3.6 8.8,3.6",
    "0,10 8.6,5.7 0,1.4",
    "0,10.6 ~.4,14 4,14 ~7.4,14 7.4,10.8 ~7.4,8.6 5.4,7.4 ~3.8,6.4 3.8,4.6;3.8,.4 3.8,0",
    "13.6,-.6 ~11.4,-3 7.8,-3 ~0,-3 0,5.4 ~0,14 8.6,14 ~16.4,14 16.4,7.4 ~16.4,3.6 13.4,3.6 ~11.4,3.6 11.6,6 12.2,10;\
     11.8,7 ~11.4,10 8.6,10 ~5,10 5,6.6 ~5,3.6 7.6,3.6 ~10.8,3.6 11.5,6",
    "0,0 5,14 10,0;1.8,5 8.2,5",
    "0,0 0,14 5,14 ~9,14 9,10.7 ~9,7.4 5,7.4 0,7.4;5,7.4 ~9.8,7.4 9.8,3.7 ~9.8,0 5,0 0,0",
    "10.5,11 ~9,14 5.6,14 ~0,14 0,7 ~0,0 5.6,0 ~9,0 10.5,3",
    "0,0 0,14 4.5,14 ~10.5,14 10.5,7 ~10.5,0 4.5,0 0,0",
    "9,14 0,14 0,0 9,0;0,7.4 8,7.4",
    "8.6,14 0,14 0,0;0,7.2 7.4,7.2",
    "10.8,11 ~9.3,14 6,14 ~0,14 0,7 ~0,0 6,0 ~9.5,0 11.2,2.4 11.2,6.6 6.4,6.6",
    "0,0 0,14;10.4,0 10.4,14;0,7.3 10.4,7.3",
    "0,0 0,14",
    "6.4,14 6.4,4 ~6.4,0 3.2,0 ~0,0 0,4",
    "0,0 0,14;9.6,14 0,5.4;3.6,8.6 10,0",
    "0,14 0,0 7.8,0",
    "0,0 0,14 6.4,1 12.8,14 12.8,0",
    "0,0 0,14 10.2,0 10.2,14",
    "6,14 ~0,14 0,7 ~0,0 6,0 ~12,0 12,7 ~12,14 6,14",
    "0,0 0,14 5.2,14 ~9.6,14 9.6,10.3 ~9.6,6.6 5.2,6.6 0,6.6",
    "6,14 ~0,14 0,7 ~0,0 6,0 ~12,0 12,7 ~12,14 6,14;7.6,3.4 12,-1",
    "0,0 0,14 5.6,14 ~10,14 10,10.4 ~10,6.8 5.6,6.8 0,6.8;5.6,6.8 10.4,0",
    "9.4,11 ~8.6,14 5,14 ~.6,14 .6,10.6 ~.6,8 5,7.3 ~9.8,6.5 9.8,3.6 ~9.8,0 5,0 ~.8,0 0,3.4",
    "0,14 10,14;5,14 5,0",
    "0,14 0,5 ~0,0 5.2,0 ~10.4,0 10.4,5 10.4,14",
    "0,14 5,0 10,14",
    "0,14 3.8,0 7.6,14 11.4,0 15.2,14",
    "0,0 10,14;0,14 10,0",
    "0,14 5,6.6 10,14;5,6.6 5,0",
    "0,14 9.4,14 0,0 9.6,0",
    "3,15 0,15 0,-4 3,-4",
    "0,14.4 4.6,-.4",
    "0,15 3,15 3,-4 0,-4",
    "0,8 3.4,14 6.8,8",
    "0,-3 10,-3",
    "0,14 2.4,11.6",
    ".6,7.8 ~1,10 4,10 ~7.4,10 7.4,6.8 7.4,0;7.4,5.8 3.6,5.6 ~0,5.4 0,2.8 ~0,0 3.2,0 ~6.2,0 7.4,2.4",
    "0,14 0,0;0,5 ~0,10 3.9,10 ~7.8,10 7.8,5 ~7.8,0 3.9,0 ~0,0 0,5",
    "7.2,7.4 ~6.6,10 3.8,10 ~0,10 0,5 ~0,0 3.8,0 ~6.6,0 7.2,2.6",
    "7.8,14 7.8,0;7.8,5 ~7.8,10 3.9,10 ~0,10 0,5 ~0,0 3.9,0 ~7.8,0 7.8,5",
    "0,5.4 7.7,5.4 ~7.7,10 3.9,10 ~0,10 0,5 ~0,0 4,0 ~6.6,0 7.4,2.4",
    "4.6,14 ~1.8,14.2 1.8,11 1.8,0;0,9.8 4.2,9.8",
    "7.8,10 7.8,-.6 ~7.8,-4 3.8,-4 ~1,-4 .4,-2;7.8,5 ~7.8,10 3.9,10 ~0,10 0,5 ~0,.4 3.9,.4 ~7.8,.4 7.8,5",
    "0,14 0,0;0,5.6 ~0,10 3.8,10 ~7.2,10 7.2,6.4 7.2,0",
    "0,10 0,0;0,13.6 0,13.2",
    "1.8,10 1.8,-1.6 ~1.8,-4 -.6,-4;1.8,13.6 1.8,13.2",
    "0,14 0,0;6.6,10 0,3.8;2.6,6.2 7,0",
    "0,14 0,0",
    "0,10 0,0;0,6 ~0,10 3.2,10 ~6.2,10 6.2,6.6 6.2,0;6.2,6 ~6.2,10 9.4,10 ~12.4,10 12.4,6.6 12.4,0",
    "0,10 0,0;0,5.6 ~0,10 3.8,10 ~7.2,10 7.2,6.4 7.2,0",
    "3.9,10 ~0,10 0,5 ~0,0 3.9,0 ~7.8,0 7.8,5 ~7.8,10 3.9,10",
    "0,10 0,-4;0,5 ~0,10 3.9,10 ~7.8,10 7.8,5 ~7.8,0 3.9,0 ~0,0 0,5",
    "7.8,10 7.8,-4;7.8,5 ~7.8,10 3.9,10 ~0,10 0,5 ~0,0 3.9,0 ~7.8,0 7.8,5",
    "0,10 0,0;0,5.4 ~0,9.8 3.8,9.8",
    "6.4,7.8 ~6,10 3.4,10 ~.4,10 .4,7.5 ~.4,5.6 3.4,5.1 ~6.8,4.6 6.8,2.5 ~6.8,0 3.4,0 ~.4,0 0,2.4",
    "1.8,13 1.8,3 ~1.8,0 4.4,.2;0,9.8 4.2,9.8",
    "0,10 0,3.8 ~0,0 3.5,0 ~7.2,0 7.2,4.6;7.2,10 7.2,0",
    "0,10 3.7,0 7.4,10",
    "0,10 2.9,0 5.8,10 8.7,0 11.6,10",
    "0,0 7.2,10;0,10 7.2,0",
    "0,10 3.8,.2;7.4,10 3.4,-1.4 ~2.4,-4 .2,-3.8",
    "0,10 6.8,10 0,0 7,0",
    "3.6,15 ~1.6,15 1.6,12.6 1.6,8 ~1.6,5.5 0,5.5 ~1.6,5.5 1.6,3 1.6,-1.6 ~1.6,-4 3.6,-4",
    "0,15 0,-4",
    "0,15 ~2,15 2,12.6 2,8 ~2,5.5 3.6,5.5 ~2,5.5 2,3 2,-1.6 ~2,-4 0,-4",
    "0,4.6 ~1.4,7.6 4.4,5.8 ~7.4,4 8.8,6.8",
];

/// Glyphs beyond ASCII.
const MORE: [(char, &str); 30] = [
    ('¡', "0,10 0,-4;0,13.6 0,13.2"),
    ('¿', "3.8,10 3.8,9.6;3.8,5.4 ~3.8,3.6 2.2,2.6 ~0,1.4 0,-.8 ~0,-4 3.6,-4 ~7,-4 7.4,-.6"),
    ('ß', "0,0 0,10.4 ~0,14 3.6,14 ~7,14 7,11 ~7,9 4.4,7.8 ~8,6.8 8,3.6 ~8,0 3.4,.2"),
    (
        'æ',
        ".4,7.8 ~.8,10 3.4,10 ~6,10 6,6.8 6,3 ~6,0 9.2,0 ~11.4,0 12,2.4;6,5.4 12,5.4 ~12,10 9,10 ~6,10 6,6;6,5.6 3,5.4 ~0,5.2 0,2.6 ~0,0 2.8,0 ~5,0 6,2.6",
    ),
    ('Æ', "0,0 6.4,14 13,14;7,14 7,0 13.4,0;7,7.2 12.4,7.2;2.2,4.6 7,4.6"),
    ('ø', "3.9,10 ~0,10 0,5 ~0,0 3.9,0 ~7.8,0 7.8,5 ~7.8,10 3.9,10;-.2,-.8 8,10.8"),
    ('Ø', "6,14 ~0,14 0,7 ~0,0 6,0 ~12,0 12,7 ~12,14 6,14;.4,-.8 11.6,14.8"),
    ('ł', "2,14 2,0;0,5.6 4,9"),
    ('Ł', "1.6,14 1.6,0 9,0;0,5.4 5.6,9.4"),
    ('ı', "0,10 0,0"),
    ('–', "0,5 8,5"),
    ('—', "0,5 16,5"),
    ('…', "0,.4 0,0;5,.4 5,0;10,.4 10,0"),
    ('·', "0,5.4 0,5"),
    ('•', "0,6 .4,5.4 0,4.8 -.4,5.4 0,6"),
    ('×', "0,2 7.4,9.4;0,9.4 7.4,2"),
    ('→', "0,5.4 10.4,5.4;6.8,9 10.4,5.4 6.8,1.8"),
    ('←', "10.4,5.4 0,5.4;3.6,9 0,5.4 3.6,1.8"),
    ('✓', "0,5 3.6,1 10,11"),
    ('✗', "0,1 8,10;0,10 8,1"),
    ('‘', "1,10.6 1,11.4 ~1,13 2,14"),
    ('’', "1,14 1,13.2 ~1,11.6 0,10.6"),
    ('“', "1,10.6 1,11.4 ~1,13 2,14;4.4,10.6 4.4,11.4 ~4.4,13 5.4,14"),
    ('”', "1,14 1,13.2 ~1,11.6 0,10.6;4.4,14 4.4,13.2 ~4.4,11.6 3.4,10.6"),
    ('«', "3.4,9 0,5 3.4,1;7.4,9 4,5 7.4,1"),
    ('»', "0,9 3.4,5 0,1;4,9 7.4,5 4,1"),
    ('≤', "8,12 0,8 8,4;0,1 8,1"),
    ('≥', "0,12 8,8 0,4;0,1 8,1"),
    ('≠', "0,7.8 8.8,7.8;0,3.6 8.8,3.6;2.4,0 6.4,11.4"),
    ('€', "9,12 ~8,14 5.8,14 ~1.6,14 1.6,7 ~1.6,0 5.8,0 ~8,0 9,2;0,8.4 6.6,8.4;0,5.6 6.2,5.6"),
];

/// CharSet with a mark: the letter as it is, the letter below, the mark.
const MARKED: &str = "ÀA`ÁA´ÂA^ÃA~ÄA¨ÅA°ÇC¸ÈE`ÉE´ÊE^ËE¨ÌI`ÍI´ÎI^ÏI¨ÑN~ÒO`ÓO´ÔO^ÕO~ÖO¨ÙU`ÚU´ÛU^ÜU¨ÝY´\
    àa`áa´âa^ãa~äa¨åa°çc¸èe`ée´êe^ëe¨ìı`íı´îı^ïı¨ñn~òo`óo´ôo^õo~öo¨ùu`úu´ûu^üu¨ýy´ÿy¨\
    ĀA¯āa¯ĂA˘ăa˘ĄA˛ąa˛ĆC´ćc´ČCˇčcˇĎDˇďdˇĒE¯ēe¯ĖE˙ėe˙ĘE˛ęe˛ĚEˇěeˇĞG˘ğg˘ĪI¯īı¯İI˙ŃN´ńn´ŇNˇňnˇ\
    ŌO¯ōo¯ŐO¨őo¨ŘRˇřrˇŚS´śs´ŞS¸şs¸ŠSˇšsˇŤTˇťtˇŪU¯ūu¯ŮU°ůu°ŰU¨űu¨ŸY¨ŹZ´źz´ŻZ˙żz˙ŽZˇžzˇ";

/// Marks over a small letter, around 0; `¸` and `˛` hang below.
const MARKS: [(char, &str); 12] = [
    ('`', "-2,14 .4,11.8"),
    ('´', "2,14 -.4,11.8"),
    ('^', "-2.4,11.8 0,14 2.4,11.8"),
    ('~', "-2.8,12 ~-1.4,14.4 0,13 ~1.4,11.6 2.8,13.6"),
    ('¨', "-2,13.4 -2,13;2,13.4 2,13"),
    ('°', "0,15 ~-1.7,15 -1.7,13.3 ~-1.7,11.6 0,11.6 ~1.7,11.6 1.7,13.3 ~1.7,15 0,15"),
    ('ˇ', "-2.4,14 0,11.8 2.4,14"),
    ('¯', "-2.4,12.8 2.4,12.8"),
    ('˘', "-2.4,14 ~0,10.6 2.4,14"),
    ('˙', "0,13.4 0,13"),
    ('¸', "0,0 ~2.2,-3.6 -1.2,-3.8"),
    ('˛', "1.4,0 ~-.8,-3.6 2.2,-3.8"),
];

/// What stands for a character without a glyph: an empty box.
const ABSENT: &str = "0,0 0,13 8,13 8,0 0,0";

/// The strokes of a character at a font size, its place `advance` wide from 0 on, the baseline at 0 and `y` downwards; and whether it is the
/// character's own glyph.
pub(super) fn strokes(character: char, size: f64, advance: f64) -> (Vec<Path>, bool) {
    if character.is_whitespace() {
        return (Vec::new(), true);
    }
    let (mut paths, is_own) = match find(character) {
        Some(glyph) => (read(glyph), true),
        None => match marked(character) {
            Some(paths) => (paths, true),
            None => (read(ABSENT), false),
        },
    };
    let points = || paths.iter().flat_map(Path::flat);
    let low = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max);
    let scale = size / UNITS;
    // A glyph that is wider than its place is narrowed.
    let across = scale * (advance / (scale * (high - low + 2.4))).min(1.0);
    let shift = advance / 2.0 - (low + high) / 2.0 * across;
    paths.iter_mut().for_each(|path| *path = path.map(|point| at(point.x * across + shift, -point.y * scale)));
    (paths, is_own)
}

fn find(character: char) -> Option<&'static str> {
    let ascii = u32::from(character).checked_sub(0x21).and_then(|index| ASCII.get(index as usize));
    ascii.copied().or_else(|| MORE.iter().find(|(known, _)| *known == character).map(|(_, glyph)| *glyph))
}

/// The strokes of a letter with a mark over its middle.
fn marked(character: char) -> Option<Vec<Path>> {
    let letters: Vec<char> = MARKED.chars().filter(|letter| !letter.is_whitespace()).collect();
    let [_, base, mark] = letters.chunks_exact(3).find(|letters| letters[0] == character)? else { return None };
    let (_, mark) = MARKS.iter().find(|(known, _)| known == mark)?;
    let mut paths = read(find(*base)?);
    let xs = || paths.iter().flat_map(Path::flat).map(|point| point.x);
    let middle = (xs().fold(f64::INFINITY, f64::min) + xs().fold(f64::NEG_INFINITY, f64::max)) / 2.0;
    let is_below = read(mark).iter().any(|path| path.end().y < 0.0);
    let rise = if base.is_uppercase() && !is_below { 3.8 } else { 0.0 };
    paths.extend(read(mark).iter().map(|path| path.map(|point| point.moved(middle, rise))));
    Some(paths)
}

/// Reads a glyph. Quadratic curves become cubic ones.
fn read(glyph: &str) -> Vec<Path> {
    glyph.split(';').map(read_line).collect()
}

fn read_line(line: &str) -> Path {
    let mut path = Path::default();
    let mut control: Option<Point> = None;
    for (index, word) in line.split_whitespace().enumerate() {
        let (is_control, word) = word.strip_prefix('~').map_or((false, word), |word| (true, word));
        let (x, y) = word.split_once(',').unwrap_or((word, "0"));
        let point = at(x.parse().unwrap_or(0.0), y.parse().unwrap_or(0.0));
        let from = path.end();
        match (index, is_control, control.take()) {
            (0, ..) => path = Path::from(point),
            (_, true, _) => control = Some(point),
            (_, false, None) => path.steps.push(Step::Line(point)),
            (_, false, Some(control)) => {
                path.steps.push(Step::Curve(
                    from.towards(control, 2.0 / 3.0),
                    point.towards(control, 2.0 / 3.0),
                    point,
                ));
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_glyph_is_well_written() {
        let all = ASCII
            .iter()
            .chain(MORE.iter().map(|(_, glyph)| glyph))
            .chain(MARKS.iter().map(|(_, glyph)| glyph))
            .chain([&ABSENT]);
        for glyph in all {
            for word in glyph.split(|c: char| c == ';' || c.is_whitespace()).filter(|word| !word.is_empty()) {
                let (x, y) =
                    word.trim_start_matches('~').split_once(',').unwrap_or_else(|| panic!("{word} in {glyph}"));
                assert!(x.parse::<f64>().is_ok() && y.parse::<f64>().is_ok(), "{word} in {glyph}");
            }
        }
    }

    #[test]
    fn every_marked_letter_has_a_letter_and_a_mark() {
        let letters: Vec<char> = MARKED.chars().filter(|letter| !letter.is_whitespace()).collect();
        assert_eq!(letters.len() % 3, 0);
        for letters in letters.chunks_exact(3) {
            assert!(marked(letters[0]).is_some(), "{letters:?}");
        }
    }

    #[test]
    fn a_character_without_a_glyph_is_said_to_be_one() {
        assert!(strokes('g', 13.0, 7.0).1 && strokes('é', 13.0, 7.0).1 && strokes(' ', 13.0, 4.0).1);
        assert!(!strokes('語', 13.0, 13.0).1);
    }
}
