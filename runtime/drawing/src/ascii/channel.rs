//! The rows between two layers: which line changes columns in which row, so that no two lie over each other.

/// A line from a column above to a column below. Lines that share a group may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wire {
    pub(super) above: usize,
    pub(super) below: usize,
    pub(super) group: usize,
}

impl Wire {
    /// True for a line that changes columns.
    fn bends(&self) -> bool {
        self.above != self.below
    }

    fn span(&self) -> (usize, usize) {
        (self.above.min(self.below), self.above.max(self.below))
    }
}

/// The row of every wire, from 0; and how many rows there are. Straight wires need none and get 0.
pub(super) fn rows(wires: &[Wire]) -> (Vec<usize>, usize) {
    let bent: Vec<usize> = (0..wires.len()).filter(|index| wires[*index].bends()).collect();
    // What ends in a column from which another begins must turn below it.
    let is_over =
        |one: usize, other: usize| wires[one].group != wires[other].group && wires[one].above == wires[other].below;
    let mut rows = vec![0; wires.len()];
    let mut is_placed = vec![false; wires.len()];
    let mut count = 0;
    for _ in 0..bent.len() {
        let waiting = |index: &&usize| !is_placed[**index];
        let is_free = |index: &&usize| !bent.iter().any(|other| !is_placed[*other] && is_over(*other, **index));
        let next = bent.iter().filter(waiting).find(is_free).or_else(|| bent.iter().find(waiting));
        let Some(&next) = next else { break };
        let least = bent
            .iter()
            .filter(|other| is_placed[**other] && is_over(**other, next))
            .map(|other| rows[*other] + 1)
            .max();
        let mut row = least.unwrap_or(0);
        while bent.iter().any(|other| is_placed[*other] && rows[*other] == row && touch(&wires[*other], &wires[next])) {
            row += 1;
        }
        rows[next] = row;
        is_placed[next] = true;
        count = count.max(row + 1);
    }
    (rows, count)
}

fn touch(one: &Wire, other: &Wire) -> bool {
    let ((low, high), (from, to)) = (one.span(), other.span());
    one.group != other.group && low <= to && from <= high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wires: &[(usize, usize, usize)], expected: &[usize]) {
        let wires = wires.iter().map(|(above, below, group)| Wire { above: *above, below: *below, group: *group });
        assert_eq!(rows(&wires.collect::<Vec<_>>()).0, expected);
    }

    #[test]
    fn wires_share_a_row_only_without_touching() {
        check(&[(1, 1, 0), (5, 9, 1)], &[0, 0]);
        check(&[(0, 4, 0), (6, 9, 1)], &[0, 0]);
        check(&[(0, 6, 0), (4, 9, 1)], &[0, 1]);
    }

    #[test]
    fn what_ends_where_another_begins_turns_below_it() {
        check(&[(0, 4, 0), (4, 8, 1)], &[1, 0]);
    }

    #[test]
    fn wires_of_one_trunk_share_their_row() {
        check(&[(0, 8, 0), (4, 8, 0), (8, 8, 0)], &[0, 0, 0]);
    }
}
