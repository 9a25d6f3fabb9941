//! Cookies of conversations: what a reply sets goes along with the later requests of the same
//! conversation. A cookie is a secret, and leaves here in requests alone.

use std::collections::{HashMap, VecDeque};
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
pub enum Conversation {
    /// Those of a session.
    Session(Arc<str>),
    /// One alone, by the run's own number for it.
    Exchange(u64),
}

/// The cookies of a run, by conversation.
#[derive(Default)]
pub struct Jars(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    jars: HashMap<Conversation, Jar>,
    /// The conversations in the order of their first cookie, also some that are gone.
    order: VecDeque<Conversation>,
    bytes: usize,
}

/// Names and values, the oldest first.
#[derive(Default)]
struct Jar(Vec<(String, String)>);

impl Conversation {
    /// The conversation of a request that has this number.
    pub fn of(prepared: &Prepared, key: u64) -> Self {
        match &prepared.sample.turn {
            Some(turn) => Conversation::Session(turn.session.as_str().into()),
            None => Conversation::Exchange(key),
        }
    }
}

impl Jars {
    /// Returns the request with the cookies of its conversation, unless it has cookies of its own.
    pub fn add(&self, to: &Conversation, request: Request) -> Request {
        let cookies = self.shelf().jars.get(to).map(Jar::field);
        let cookies = cookies.filter(|cookies| !cookies.is_empty());
        match cookies.and_then(|cookies| HeaderValue::try_from(cookies).ok()) {
            Some(mut cookies) => {
                cookies.set_sensitive(true);
                request.with_missing(&[(COOKIE, cookies)])
            }
            None => request,
        }
    }

    /// Takes the cookies that a reply sets.
    pub fn take(&self, of: &Conversation, headers: &HeaderMap) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let mut shelf = self.shelf();
        let shelf = &mut *shelf;
        let jar = shelf.jars.entry(of.clone()).or_insert_with(|| {
            shelf.order.push_back(of.clone());
            Jar::default()
        });
        let before = jar.bytes();
        for set in headers.get_all(SET_COOKIE) {
            if let Ok(set) = set.to_str() {
                jar.set(set);
            }
        }
        shelf.bytes = shelf.bytes + jar.bytes() - before;
        while shelf.bytes > BYTES
            && let Some(oldest) = shelf.order.pop_front()
        {
            shelf.remove(&oldest);
        }
    }

    /// Returns the values of a conversation, which must not be seen.
    pub fn values(&self, of: &Conversation) -> Vec<String> {
        let shelf = self.shelf();
        let jar = shelf.jars.get(of).into_iter();
        jar.flat_map(|jar| jar.0.iter().map(|(_, value)| value.clone())).collect()
    }

    /// Forgets the cookies of an exchange that is over; those of a session stay.
    pub fn close(&self, of: &Conversation) {
        if let Conversation::Exchange(_) = of {
            let mut shelf = self.shelf();
            shelf.remove(of);
            while shelf.order.front().is_some_and(|first| !shelf.jars.contains_key(first)) {
                shelf.order.pop_front();
            }
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn remove(&mut self, of: &Conversation) {
        self.bytes -= self.jars.remove(of).map_or(0, |jar| jar.bytes());
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
    fn a_jar_has_the_last_value_of_each_name() {
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
        let session = Conversation::Session("s".into());
        let set = |value: &'static str| {
            HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static(value))])
        };
        jars.take(&session, &set("a=1"));
        jars.take(&Conversation::Exchange(1), &set("a=2"));
        assert_eq!(jars.values(&session), ["1"]);
        assert_eq!(jars.values(&Conversation::Exchange(1)), ["2"]);
        jars.close(&Conversation::Exchange(1));
        jars.close(&session);
        assert_eq!(jars.values(&session), ["1"]);
        assert_eq!(jars.values(&Conversation::Exchange(1)), Vec::<String>::new());
        assert_eq!(jars.shelf().bytes, 2);
    }
}
