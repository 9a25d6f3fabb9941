//! What a panic prints: nothing where it becomes an error that is told, and nothing on the alternate screen, with which
//! the message would be lost.

use super::dashboard::screen;

/// Has every panic from now on printed like this.
pub fn install() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !session::is_guarded() {
            screen::leave();
            print(panic);
        }
    }));
}
