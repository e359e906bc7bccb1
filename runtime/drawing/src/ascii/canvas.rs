//! A grid of characters. Each cell of a line knows in which directions the line goes on, which decides the character of corners and junctions.
//!
//! Lines that have nothing to do with each other cross without a junction: the vertical one is drawn through. Text covers lines.

use super::CharSet;
use crate::text::cells;

/// Directions in which a line goes on from a cell.
pub(super) const UP: u8 = 1;
const RIGHT: u8 = 2;
pub(super) const DOWN: u8 = 4;
const LEFT: u8 = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Empty,
    /// A line, and whose it is.
    Line(u8, usize),
    Char(char),
    /// The border of a frame, which lines run over.
    Frame(char),
    /// The right half of a wide character.
    Covered,
}

/// The sheet.
pub(super) struct Canvas {
    rows: Vec<Vec<Cell>>,
    char_set: CharSet,
}

impl Canvas {
    /// An empty sheet.
    pub(super) fn new(columns: usize, rows: usize, char_set: CharSet) -> Canvas {
        Canvas { rows: vec![vec![Cell::Empty; columns]; rows], char_set }
    }

    /// What lines are made of.
    pub(super) fn char_set(&self) -> CharSet {
        self.char_set
    }

    /// Puts a character of a frame where nothing is yet.
    pub(super) fn frame(&mut self, x: usize, y: usize, character: char) {
        if let Some(cell @ (Cell::Empty | Cell::Frame(_))) = self.rows.get_mut(y).and_then(|row| row.get_mut(x)) {
            *cell = Cell::Frame(character);
        }
    }

    /// True when so many columns of a row show a frame and nothing else.
    pub(super) fn is_frame(&self, x: usize, y: usize, columns: usize) -> bool {
        let cells = self.rows.get(y).and_then(|row| row.get(x..x + columns));
        cells.is_some_and(|cells| cells.iter().all(|cell| matches!(cell, Cell::Frame(_))))
    }

    /// Draws a line of an owner between two cells of a column or a row. Both ends go on in the direction of the other only.
    pub(super) fn line(&mut self, owner: usize, from: (usize, usize), to: (usize, usize)) {
        let ((x, y), (end_x, end_y)) = (from.min(to), from.max(to));
        if from == to {
            self.join(owner, x, y, 0);
        } else if x == end_x {
            let (top, bottom) = (y.min(end_y), y.max(end_y));
            for row in top..=bottom {
                let up = if row > top { UP } else { 0 };
                let down = if row < bottom { DOWN } else { 0 };
                self.join(owner, x, row, up | down);
            }
        } else {
            for column in x..=end_x {
                let left = if column > x { LEFT } else { 0 };
                let right = if column < end_x { RIGHT } else { 0 };
                self.join(owner, column, y, left | right);
            }
        }
    }

    /// Lets an owner's line go on in more directions at a cell.
    pub(super) fn join(&mut self, owner: usize, x: usize, y: usize, directions: u8) {
        let Some(cell) = self.rows.get_mut(y).and_then(|row| row.get_mut(x)) else { return };
        *cell = match *cell {
            Cell::Empty | Cell::Frame(_) => Cell::Line(directions, owner),
            Cell::Line(before, whose) if whose == owner => Cell::Line(before | directions, owner),
            Cell::Line(before, whose) => {
                if directions & (UP | DOWN) != 0 && before & (UP | DOWN) == 0 {
                    Cell::Line(directions, owner)
                } else if directions & (LEFT | RIGHT) != 0 && before & (LEFT | RIGHT) == 0 {
                    Cell::Line(before, whose)
                } else {
                    Cell::Line(before | directions, whose)
                }
            }
            other => other,
        };
    }

    /// Puts a character over whatever is there.
    pub(super) fn put(&mut self, x: usize, y: usize, character: char) {
        if let Some(cell) = self.rows.get_mut(y).and_then(|row| row.get_mut(x)) {
            *cell = Cell::Char(character);
        }
    }

    /// Writes a text from a column on.
    pub(super) fn write(&mut self, mut x: usize, y: usize, text: &str) {
        for character in text.chars() {
            match cells(character) {
                // A mark that combines has no cell of its own here.
                0 => {}
                1 => {
                    self.put(x, y, character);
                    x += 1;
                }
                _ => {
                    self.put(x, y, character);
                    if let Some(cell) = self.rows.get_mut(y).and_then(|row| row.get_mut(x + 1)) {
                        *cell = Cell::Covered;
                    }
                    x += 2;
                }
            }
        }
    }

    /// The sheet as text, without white space at the ends of lines.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let characters = row.iter().filter_map(|cell| match cell {
                Cell::Empty => Some(' '),
                Cell::Line(directions, _) => Some(stroke(*directions, self.char_set)),
                Cell::Char(character) | Cell::Frame(character) => Some(*character),
                Cell::Covered => None,
            });
            text.push_str(characters.collect::<String>().trim_end());
            text.push('\n');
        }
        text
    }
}

/// The character of a line that goes on in these directions.
fn stroke(directions: u8, char_set: CharSet) -> char {
    const UNICODE: [char; 16] = [' ', '│', '─', '╰', '│', '│', '╭', '├', '─', '╯', '─', '┴', '╮', '┤', '┬', '┼'];
    match char_set {
        CharSet::Unicode => UNICODE[usize::from(directions & 15)],
        CharSet::Ascii if directions & (LEFT | RIGHT) == 0 => '|',
        CharSet::Ascii if directions & (UP | DOWN) == 0 => '-',
        CharSet::Ascii => '+',
    }
}
