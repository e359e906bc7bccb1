//! Inserts steering messages into the conversation, each at a fixed place.
//!
//! The component does not see these messages, so it can neither hide nor repeat them. The host inserts each one after the component's
//! messages that were there when it arrived. If the component has changed those messages since, the steering message moves to the end
//! of the current request and stays there.

use crate::bindings::chat::{Message, Part};
use crate::bindings::llm::Request;
use glovebox_models::chat::TEXT;
use glovebox_record::SteeringMessage;
use glovebox_record::{Digest, SteeringDelivery};
use std::sync::Arc;

/// The steering messages that are part of the conversation.
#[derive(Debug, Default)]
pub(super) struct SteeringPlaces(Vec<PlacedMessage>);

#[derive(Debug)]
struct PlacedMessage {
    message: Arc<SteeringMessage>,
    /// Number of the component's messages before this one, and the hash of those messages.
    place: (usize, Digest),
    /// First turn whose request contained the message.
    turn: u32,
}

impl SteeringPlaces {
    /// Inserts earlier and new steering messages into a request. `most` is the number of them that the logged request of this turn
    /// contained, if the attempt is repeated. Returns the number of steering messages in the request.
    pub(super) fn insert(
        &mut self,
        all: &[Arc<SteeringMessage>],
        most: Option<usize>,
        request: &mut Request,
        turn: u32,
    ) -> usize {
        let count = most.unwrap_or(all.len()).min(all.len());
        if count == 0 && self.0.is_empty() {
            return 0;
        }
        let hashes = prefix_hashes(&request.messages);
        let end = (request.messages.len(), hashes[request.messages.len()]);
        let new = all.iter().take(count).skip(self.0.len());
        self.0.extend(new.map(|message| PlacedMessage { message: Arc::clone(message), place: end, turn }));
        for given in self.0.iter_mut().filter(|given| hashes.get(given.place.0) != Some(&given.place.1)) {
            given.place = end;
        }
        // Inserts from the end, so that earlier places stay valid.
        let mut places: Vec<(usize, &PlacedMessage)> = self.0.iter().map(|given| (given.place.0, given)).collect();
        places.sort_by_key(|(at, _)| *at);
        for (at, given) in places.into_iter().rev() {
            let part = Part { kind: TEXT.to_owned(), text: given.message.text.to_owned(), fields: Vec::new() };
            request.messages.insert(at, Message { role: "user".to_owned(), parts: vec![part] });
        }
        self.0.len()
    }

    /// Returns the delivery of each message, given the number of answered turns.
    pub(super) fn deliveries(&self, all: &[Arc<SteeringMessage>], turns: u32) -> Vec<SteeringDelivery> {
        let given = |at: usize| self.0.get(at).map(|given| given.turn).filter(|turn| *turn <= turns);
        all.iter()
            .enumerate()
            .map(|(at, message)| SteeringDelivery { message: message.id.clone(), turn: given(at) })
            .collect()
    }
}

/// Returns the hashes of the messages before each place, and of all messages. Fields are ignored, because the host adds some.
fn prefix_hashes(messages: &[Message]) -> Vec<Digest> {
    let mut hashes = vec![Digest::hash(b"")];
    for message in messages {
        let mut text = hashes.last().map(|digest| digest.hex().into_bytes()).unwrap_or_default();
        let mut add = |word: &str| {
            text.extend_from_slice(&word.len().to_le_bytes());
            text.extend_from_slice(word.as_bytes());
        };
        add(&message.role);
        for part in &message.parts {
            add(&part.kind);
            add(&part.text);
        }
        hashes.push(Digest::hash(&text));
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &str) -> Request {
        let part = |text: char| Part { kind: TEXT.to_owned(), text: text.to_string(), fields: Vec::new() };
        let message = |text| Message { role: "user".to_owned(), parts: vec![part(text)] };
        Request { messages: words.chars().map(message).collect(), tools: Vec::new(), options: Vec::new() }
    }

    fn messages(words: &str) -> Vec<Arc<SteeringMessage>> {
        let message = |text: char| SteeringMessage { id: text.to_string().into(), text: text.to_string() };
        words.chars().map(message).map(Arc::new).collect()
    }

    fn ask(steered: &mut SteeringPlaces, steering: (&str, Option<usize>), asked: &str, turn: u32) -> String {
        let mut request = request(asked);
        steered.insert(&messages(steering.0), steering.1, &mut request, turn);
        request.messages.iter().map(|message| message.parts[0].text.as_str()).collect()
    }

    #[test]
    fn a_message_keeps_its_place_in_the_conversation() {
        let steered = &mut SteeringPlaces::default();
        assert_eq!(ask(steered, ("", None), "ab", 1), "ab");
        assert_eq!(ask(steered, ("XY", None), "abcd", 2), "abcdXY");
        assert_eq!(ask(steered, ("XYZ", None), "abcdef", 3), "abcdXYefZ");
        assert_eq!(ask(steered, ("XYZ", None), "abcdefgh", 4), "abcdXYefZgh");
        assert_eq!(ask(steered, ("XYZ", None), "as", 5), "asXYZ", "a component that began anew gets them again");
        let deliveries = steered.deliveries(&messages("XYZQ"), 2);
        assert_eq!(
            deliveries.iter().map(|deliveries| deliveries.turn).collect::<Vec<_>>(),
            [Some(2), Some(2), None, None]
        );
    }

    #[test]
    fn a_message_stays_where_a_shorter_conversation_has_put_it() {
        let steered = &mut SteeringPlaces::default();
        assert_eq!(ask(steered, ("X", None), "abcd", 1), "abcdX");
        assert_eq!(ask(steered, ("X", None), "alcd", 2), "alcdX", "its place is gone");
        assert_eq!(ask(steered, ("XY", None), "alcdef", 3), "alcdXefY");
        assert_eq!(ask(steered, ("XY", None), "alcdefgh", 4), "alcdXefYgh");
    }

    #[test]
    fn a_repeated_turn_has_the_messages_that_it_had() {
        let steered = &mut SteeringPlaces::default();
        assert_eq!(ask(steered, ("XY", Some(0)), "ab", 1), "ab");
        assert_eq!(ask(steered, ("XY", Some(1)), "abcd", 2), "abcdX");
        assert_eq!(ask(steered, ("XY", Some(5)), "abcdef", 3), "abcdXefY");
        assert_eq!(ask(steered, ("XY", Some(0)), "abcdefgh", 4), "abcdXefYgh", "an inserted message stays");
    }
}
