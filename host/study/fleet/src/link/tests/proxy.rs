//! Between agents and a coordinator: passes bytes on, and cuts connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A fault of the open connections.
#[derive(Clone, Copy)]
enum Fault {
    Cut,
    Freeze,
}

/// A proxy that cuts each connection after this number of bytes of both directions together.
pub(super) struct Proxy {
    port: u16,
    connections: Arc<AtomicU32>,
    cut: watch::Sender<Fault>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    pub(super) async fn new(to: u16, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU32::new(0));
        let (cut, cuts) = watch::channel(Fault::Cut);
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
                tokio::spawn(pass(near, far, most, cuts.clone()));
            }
        });
        Proxy { port, connections, cut, task }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn cut(&self) {
        self.cut.send_replace(Fault::Cut);
    }

    /// Passes no more bytes on open connections, and closes none.
    pub(super) fn freeze(&self) {
        self.cut.send_replace(Fault::Freeze);
    }
}

async fn pass(
    mut near: TcpStream,
    mut far: TcpStream,
    most: usize,
    mut cuts: watch::Receiver<Fault>,
) {
    let (mut there, mut back) = (vec![0; 10_007], vec![0; 10_007]);
    let mut passed = 0;
    cuts.mark_unchanged();
    while passed < most {
        let (from, length) = tokio::select! {
            read = near.read(&mut there) => (true, read.unwrap_or(0)),
            read = far.read(&mut back) => (false, read.unwrap_or(0)),
            Ok(()) = cuts.changed() => {
                let fault = *cuts.borrow();
                match fault {
                    Fault::Cut => return,
                    Fault::Freeze => std::future::pending().await,
                }
            }
        };
        let kept = length.min(most - passed);
        passed += kept;
        let written = if from {
            far.write_all(&there[..kept]).await
        } else {
            near.write_all(&back[..kept]).await
        };
        if length == 0 || written.is_err() {
            return;
        }
    }
}
