//! Frames of the control socket: the host and the helper read and write them with the same functions.
//!
//! A frame is a length of four bytes, little-endian, followed by JSON. Descriptors are sent with the first byte of a
//! frame and are received close-on-exec. A reader takes exactly one frame's bytes from the socket, so that the next
//! reader, which may be another process, starts at a frame. A frame that is too long, malformed or cut off is an error.
#![forbid(unsafe_code)]

use crate::wire::FRAME_BYTES_MAX;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, send, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::mem::MaybeUninit;

/// Maximum number of descriptors with one frame.
pub const DESCRIPTORS_MAX: usize = 8;

const LENGTH_BYTES: usize = 4;

/// Why a frame was not sent or received.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The socket failed. `EPIPE` and `ECONNRESET` mean that the other end was closed.
    #[error("control socket: {0}")]
    Socket(#[from] Errno),
    /// The other end closed the socket inside a frame.
    #[error("control socket: closed within a frame")]
    CutOff,
    /// The frame has more than [`FRAME_BYTES_MAX`] bytes.
    #[error("control socket: a frame has {0} bytes, expected at most {FRAME_BYTES_MAX}")]
    TooLong(usize),
    /// The frame has more than [`DESCRIPTORS_MAX`] descriptors, or more than this process may open.
    #[error("control socket: too many descriptors with a frame")]
    TooManyDescriptors,
    /// The frame violates the protocol.
    #[error("control socket: malformed frame: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Sends one frame with these descriptors. Blocks while the socket is full. Never raises `SIGPIPE`.
///
/// # Errors
/// Returns a [`ControlError`]. After an error, the socket cannot be used.
pub fn send_frame<T: Serialize>(
    socket: impl AsFd,
    frame: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), ControlError> {
    let mut bytes = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = bytes.len() - LENGTH_BYTES;
    if length > FRAME_BYTES_MAX {
        return Err(ControlError::TooLong(length));
    }
    bytes[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(ControlError::TooManyDescriptors);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(ControlError::TooManyDescriptors);
    }
    let mut sent = retry(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL))?;
    while sent < bytes.len() {
        sent += retry(|| send(&socket, &bytes[sent..], SendFlags::NOSIGNAL))?;
    }
    Ok(())
}

/// Waits for one frame and receives it with its descriptors. Returns `None` if the other end closed the socket between
/// frames.
///
/// # Errors
/// Returns a [`ControlError`]. After an error, the socket cannot be used.
pub fn receive_frame<T: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(T, Vec<OwnedFd>)>, ControlError> {
    let mut length = [0; LENGTH_BYTES];
    let (got, descriptors) = receive_start(&socket, &mut length)?;
    if got == 0 {
        return Ok(None);
    }
    fill(&socket, &mut length, got)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(ControlError::TooLong(length));
    }
    let mut bytes = vec![0; length];
    fill(&socket, &mut bytes, 0)?;
    Ok(Some((serde_json::from_slice(&bytes)?, descriptors)))
}

fn receive_start(socket: impl AsFd, into: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), ControlError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = retry(|| recvmsg(&socket, &mut [IoSliceMut::new(into)], &mut beside, RecvFlags::CMSG_CLOEXEC))?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) || descriptors.len() > DESCRIPTORS_MAX {
        return Err(ControlError::TooManyDescriptors);
    }
    Ok((received.bytes, descriptors))
}

fn fill(socket: impl AsFd, into: &mut [u8], mut got: usize) -> Result<(), ControlError> {
    while got < into.len() {
        let (more, _) = retry(|| recv(&socket, &mut into[got..], RecvFlags::empty()))?;
        if more == 0 {
            return Err(ControlError::CutOff);
        }
        got += more;
    }
    Ok(())
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Failure, Reply};
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::io::{FdFlags, fcntl_getfd, read, write};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket pair")
    }

    fn failure(text: String) -> Reply {
        Reply::Failed(Failure { step: "step".to_owned(), errno: 1, text })
    }

    #[test]
    fn frames_arrive_one_by_one_with_their_descriptors() {
        let (here, there) = pair();
        let file = memfd_create("file", MemfdFlags::empty()).expect("a file");
        write(&file, b"content").expect("room");
        send_frame(&here, &failure("first".to_owned()), &[file.as_fd(), here.as_fd()]).expect("sent");
        send_frame(&here, &Reply::Started, &[]).expect("sent");
        drop((file, here));
        let (word, descriptors) = receive_frame::<Reply>(&there).expect("whole").expect("a frame");
        assert_eq!(word, failure("first".to_owned()));
        assert_eq!(descriptors.len(), 2);
        assert!(fcntl_getfd(&descriptors[0]).expect("open").contains(FdFlags::CLOEXEC));
        rustix::fs::seek(&descriptors[0], rustix::fs::SeekFrom::Start(0)).expect("a file");
        let mut content = [0; 16];
        assert_eq!(read(&descriptors[0], &mut content).expect("readable"), 7);
        let (word, none) = receive_frame::<Reply>(&there).expect("whole").expect("a frame");
        assert_eq!((word, none.len()), (Reply::Started, 0));
        drop(descriptors);
        assert!(receive_frame::<Reply>(&there).expect("closed between frames").is_none());
    }

    #[test]
    fn long_frames_pass_and_too_long_ones_do_not() {
        let (here, there) = pair();
        let long = failure("x".repeat(1 << 20));
        let sender = std::thread::spawn(move || {
            send_frame(&here, &failure("x".repeat(1 << 20)), &[]).expect("sent");
            send_frame(&here, &failure("x".repeat(FRAME_BYTES_MAX)), &[])
        });
        assert_eq!(receive_frame::<Reply>(&there).expect("whole").expect("a frame").0, long);
        assert!(matches!(sender.join().expect("no panic"), Err(ControlError::TooLong(_))));
        let (here, there) = pair();
        write(&here, &(FRAME_BYTES_MAX as u32 + 1).to_le_bytes()).expect("sent");
        assert!(matches!(receive_frame::<Reply>(&there), Err(ControlError::TooLong(_))));
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_an_error() {
        for (bytes, closed) in [(&b"\x05\0"[..], true), (b"\x05\0\0\0\"a", true), (b"\x03\0\0\0\"a\"", false)] {
            let (here, there) = pair();
            write(&here, bytes).expect("sent");
            let open = Some(here).filter(|_| !closed);
            let error = receive_frame::<Reply>(&there).expect_err("not a frame");
            assert_eq!(matches!(error, ControlError::CutOff), closed, "{error}");
            drop(open);
        }
    }
}
