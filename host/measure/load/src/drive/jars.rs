//! Cookies that replies set, for later requests of their conversation. They are secrets.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;
use hyper::header::{COOKIE, HeaderValue, SET_COOKIE};

use crate::transport::Request;
use model::exchange::Prepared;

/// The most cookies of a conversation.
const COOKIES: usize = 64;
/// The most bytes of a conversation's cookies.
const JAR_BYTES: usize = 16 << 10;
/// The most bytes of all cookies.
const BYTES: usize = 64 << 20;

/// The exchanges that share cookies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Conversation {
    Session(Arc<str>),
    /// One alone, by the run's own number for it.
    Exchange(u64),
}

#[derive(Default)]
pub struct Jars(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    /// With the number of each in the order of first cookies.
    jars: HashMap<Conversation, (u64, Jar)>,
    order: BTreeMap<u64, Conversation>,
    begun: u64,
    bytes: usize,
}

/// Names and values, the oldest first.
#[derive(Default)]
struct Jar(Vec<(String, String)>);

pub struct Cookies<'j> {
    jars: &'j Jars,
    conversation: Conversation,
}

impl Jars {
    /// Returns the cookies of the conversation of a request that has this number.
    pub fn cookies(&self, prepared: &Prepared, key: u64) -> Cookies<'_> {
        let conversation = match &prepared.sample.turn {
            Some(turn) => Conversation::Session(turn.session.as_str().into()),
            None => Conversation::Exchange(key),
        };
        Cookies { jars: self, conversation }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cookies<'_> {
    /// Returns the request with the cookies, unless it has cookies of its own.
    pub fn add(&self, request: Request) -> Request {
        let cookies = self.with(Jar::field).filter(|cookies| !cookies.is_empty());
        match cookies.and_then(|cookies| HeaderValue::try_from(cookies).ok()) {
            Some(mut cookies) => {
                cookies.set_sensitive(true);
                request.with_missing(&[(COOKIE, cookies)])
            }
            None => request,
        }
    }

    pub fn take(&self, headers: &HeaderMap) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let mut shelf = self.jars.shelf();
        let Shelf { jars, order, begun, bytes } = &mut *shelf;
        let (_, jar) = jars.entry(self.conversation.clone()).or_insert_with(|| {
            *begun += 1;
            order.insert(*begun, self.conversation.clone());
            (*begun, Jar::default())
        });
        let before = jar.bytes();
        for set in headers.get_all(SET_COOKIE) {
            if let Ok(set) = set.to_str() {
                jar.set(set);
            }
        }
        *bytes = *bytes + jar.bytes() - before;
        while shelf.bytes > BYTES
            && let Some((_, oldest)) = shelf.order.pop_first()
        {
            shelf.remove(&oldest);
        }
    }

    pub fn values(&self) -> Vec<String> {
        let values = |jar: &Jar| jar.0.iter().map(|(_, value)| value.clone()).collect();
        self.with(values).unwrap_or_default()
    }

    /// Forgets the cookies of an exchange that is over; a session's cookies stay.
    pub fn close(&self) {
        if let Conversation::Exchange(_) = self.conversation {
            self.jars.shelf().remove(&self.conversation);
        }
    }

    fn with<R>(&self, read: impl FnOnce(&Jar) -> R) -> Option<R> {
        self.jars.shelf().jars.get(&self.conversation).map(|(_, jar)| read(jar))
    }
}

impl Shelf {
    fn remove(&mut self, conversation: &Conversation) {
        if let Some((number, jar)) = self.jars.remove(conversation) {
            self.order.remove(&number);
            self.bytes -= jar.bytes();
        }
    }
}

impl Jar {
    fn field(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Takes the value of a field `set-cookie`.
    fn set(&mut self, text: &str) {
        let mut parts = text.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let (name, value) = (name.trim(), value.trim());
        let ends = parts.any(|attribute| {
            let (name, age) = attribute.split_once('=').unwrap_or((attribute, ""));
            let is_age = name.trim().eq_ignore_ascii_case("max-age");
            is_age && age.trim().parse().is_ok_and(|age: i64| age <= 0)
        });
        self.0.retain(|(other, _)| other != name);
        if !name.is_empty() && !ends {
            self.0.push((name.to_owned(), value.to_owned()));
        }
        while self.0.len() > COOKIES || self.bytes() > JAR_BYTES {
            self.0.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(sets: &[&str]) -> String {
        let mut jar = Jar::default();
        sets.iter().for_each(|set| jar.set(set));
        jar.field()
    }

    #[test]
    fn jar_keeps_the_last_value_of_each_name() {
        for (sets, field) in [
            (&["a=1; Path=/; HttpOnly", "b=x=y"][..], "a=1; b=x=y"),
            (&["a=1", "b=2", "a=3; Max-Age=60"], "b=2; a=3"),
            (&["a=1", "b=2", "a=; max-age=0"], "b=2"),
            (&["a=1", "a=; Max-Age=-1", "none", "=x"], ""),
        ] {
            assert_eq!(jar(sets), field);
        }
        let many: Vec<String> = (0..66).map(|number| format!("n{number}=v")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(jar(&many).starts_with("n2=v; n3=v"));
        let large = format!("l={}", "x".repeat(JAR_BYTES - 1));
        assert_eq!(jar(&["a=1", &large]), large);
        assert_eq!(jar(&["a=1", &format!("{large}x")]), "");
    }

    #[test]
    fn conversations_share_no_cookie() {
        let jars = Jars::default();
        let of = |conversation| Cookies { jars: &jars, conversation };
        let session = of(Conversation::Session("s".into()));
        let exchange = of(Conversation::Exchange(1));
        let set = |value: &'static str| {
            HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static(value))])
        };
        session.take(&set("a=1"));
        exchange.take(&set("a=2"));
        assert_eq!(session.values(), ["1"]);
        assert_eq!(exchange.values(), ["2"]);
        exchange.close();
        session.close();
        assert_eq!(session.values(), ["1"]);
        assert_eq!(exchange.values(), Vec::<String>::new());
        let shelf = jars.shelf();
        assert_eq!((shelf.bytes, shelf.order.len(), shelf.jars.len()), (2, 1, 1));
    }
}
