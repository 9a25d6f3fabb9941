//! The cases: engines and workloads that real ones resemble.

use simulator::{
    BIMODAL, CHAT, Case, FIXED, Load, Parameters, REASONING, SHAREGPT, TEMPLATES, THOUSAND,
    Workload, label,
};

#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name, after a comma; empty for the usual one.
    name: &'static str,
    parameters: &'static str,
}

/// 32 slots, 10 ms a step and more for the contents of the batch.
pub const USUAL: Engine = Engine { name: "", parameters: "" };

/// An engine with room for every request; its steps take longer the more context it holds.
pub const FREE: Engine = Engine {
    name: ", free slots",
    parameters: "slots=1024,step=8ms,request=10us,prompt-token=10us,context=5ns,chunk=8192",
};

/// An engine with many slots, which long answers bind.
pub const MANY: Engine = Engine {
    name: ", 256 slots",
    parameters: "slots=256,step=10ms,request=50us,prompt-token=10us,chunk=8192",
};

/// An engine whose steps take longer the more context it holds.
pub const CONTEXT: Engine =
    Engine { name: ", steps that grow with the context", parameters: "context=500ns" };

/// An engine that admits requests only while its KV cache has room.
pub const KV: Engine = Engine { name: ", KV cache of 12,000 tokens", parameters: "kv=12000" };

/// An engine that reads prompts in small pieces.
pub const CHUNKS: Engine =
    Engine { name: ", prompts read in pieces of 256 tokens", parameters: "chunk=256" };

pub const SLOW_JITTER: Engine = Engine {
    name: ", steps that drift slowly (jitter 10 %, correlation 0.99)",
    parameters: "jitter=0.1,correlation=0.99",
};

pub type Named = (&'static str, Workload);

pub const CHATS: Named = ("", Workload::new(CHAT[0], CHAT[1]));
pub const EVEN: Named = ("fixed lengths, ", Workload::new(FIXED[0], FIXED[1]));
/// As in the dataset.
pub const SHARED: Named = ("ShareGPT, ", SHAREGPT);
pub const THINKING: Named = ("reasoning, ", REASONING);
pub const LONG: Named = ("1k/1k, ", THOUSAND);
pub const MIXED: Named = ("5 % prompts of 12k, ", BIMODAL);
/// Prompts have beginnings in common.
pub const PREFIXES: Named = ("prefix templates, ", TEMPLATES);

pub fn case(workload: Named, engine: Engine, load: Load, requests: usize) -> Case {
    let name = format!("{}{}{}", workload.0, label(load, requests), engine.name);
    Case::new(&name, parameters(engine), workload.1, load, requests)
}

pub fn parameters(engine: Engine) -> Parameters {
    engine.parameters.parse().unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// Arrivals in bursts: gaps that vary twice as much as by chance.
pub fn bursts(share: f64) -> Load {
    Load::Gamma { share, shape: 0.25 }
}
