//! The protocol of WebSockets (RFC 6455), a server's side: messages out of frames, and frames out
//! of messages.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

/// The largest message that is taken, in bytes.
const MESSAGE_BYTES: usize = 16 << 20;

const CONTINUED: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;

pub(super) enum Message {
    Text(String),
    Binary,
}

/// Bytes that are read at once. A message is several reads of a few bytes each, and with a thousand
/// clients each read of the socket would delay the clients behind it.
const READ_BYTES: usize = 4 << 10;

pub(super) struct Reader<Io>(BufReader<Io>);

pub(super) struct Writer<Io> {
    io: Io,
    /// The most bytes of a frame; longer messages have several.
    split: usize,
    /// True if a ping goes before every message.
    pings: bool,
    is_closed: bool,
}

impl<Io: AsyncRead + Unpin> Reader<Io> {
    pub fn new(io: Io) -> Self {
        Reader(BufReader::with_capacity(READ_BYTES, io))
    }

    /// The next message; nothing if the client closes. Answers pings.
    pub async fn message(
        &mut self,
        writer: &mut Writer<impl AsyncWrite + Unpin>,
    ) -> io::Result<Option<Message>> {
        let (mut kind, mut whole) = (CONTINUED, Vec::new());
        loop {
            let (first, payload) = self.frame(MESSAGE_BYTES - whole.len()).await?;
            match (first & 0x0f, kind) {
                (CLOSE, _) => return Ok(None),
                (PING, _) => writer.frame(FINAL | PONG, &payload).await?,
                (PONG, _) => {}
                (TEXT | BINARY, CONTINUED) | (CONTINUED, TEXT | BINARY) => {
                    if kind == CONTINUED {
                        kind = first & 0x0f;
                    }
                    whole.extend(&payload);
                    if first & FINAL > 0 {
                        break;
                    }
                }
                _ => return Err(ErrorKind::InvalidData.into()),
            }
        }
        if kind == BINARY {
            return Ok(Some(Message::Binary));
        }
        let text = String::from_utf8(whole).map_err(|_| ErrorKind::InvalidData)?;
        Ok(Some(Message::Text(text)))
    }

    /// Waits until the client closes, or goes away. It sends nothing before.
    pub async fn until_closed(&mut self) {
        while let Ok((first, _)) = self.frame(MESSAGE_BYTES).await {
            if first & 0x0f == CLOSE {
                return;
            }
        }
    }

    async fn frame(&mut self, most: usize) -> io::Result<(u8, Vec<u8>)> {
        let first = self.0.read_u8().await?;
        let second = self.0.read_u8().await?;
        let length = match second & 0x7f {
            126 => u64::from(self.0.read_u16().await?),
            127 => self.0.read_u64().await?,
            short => u64::from(short),
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= most);
        let (Some(length), true) = (length, second & 0x80 > 0) else {
            // Too long, or without the mask that a client's frames have.
            return Err(ErrorKind::InvalidData.into());
        };
        let mut mask = [0; 4];
        self.0.read_exact(&mut mask).await?;
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).await?;
        for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= key;
        }
        Ok((first, payload))
    }
}

impl<Io: AsyncWrite + Unpin> Writer<Io> {
    pub fn new(io: Io, split: usize, pings: bool) -> Self {
        Writer { io, split, pings, is_closed: false }
    }

    pub async fn text(&mut self, text: &str) -> io::Result<()> {
        if self.pings {
            self.frame(FINAL | PING, b"mock").await?;
        }
        let mut pieces = text.as_bytes().chunks(self.split).peekable();
        let mut kind = TEXT;
        while let Some(piece) = pieces.next() {
            let last = if pieces.peek().is_none() { FINAL } else { 0 };
            self.frame(last | kind, piece).await?;
            kind = CONTINUED;
        }
        Ok(())
    }

    /// Closes, if that has not been done.
    pub async fn close(&mut self, code: u16, reason: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
        self.frame(FINAL | CLOSE, &payload).await
    }

    async fn frame(&mut self, first: u8, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + 10);
        bytes.push(first);
        match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
            (Ok(short @ ..=125), _) => bytes.push(short),
            (_, Ok(length)) => {
                bytes.push(126);
                bytes.extend(length.to_be_bytes());
            }
            _ => {
                bytes.push(127);
                bytes.extend((payload.len() as u64).to_be_bytes());
            }
        }
        bytes.extend(payload);
        self.io.write_all(&bytes).await?;
        self.io.flush().await
    }
}
