//! Lines of engines' logs that name the cause of a death. The lists are messages of engines and of
//! the libraries below them; an unknown line leaves the cause open.

use crate::exit::Class;

/// A line that names the cause of an engine's death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub class: Class,
    pub line: String,
}

/// Parts of lines, each with its cause. The first match counts.
const KNOWN: [(&str, Class); 26] = [
    // PyTorch, for each kind of device.
    ("torch.OutOfMemoryError", Class::OutOfDeviceMemory),
    ("torch.cuda.OutOfMemoryError", Class::OutOfDeviceMemory),
    ("CUDA out of memory", Class::OutOfDeviceMemory),
    ("HIP out of memory", Class::OutOfDeviceMemory),
    ("XPU out of memory", Class::OutOfDeviceMemory),
    ("CUDA error: out of memory", Class::OutOfDeviceMemory),
    ("CUBLAS_STATUS_ALLOC_FAILED", Class::OutOfDeviceMemory),
    // JAX, TensorRT-LLM and llama.cpp.
    ("RESOURCE_EXHAUSTED: Out of memory", Class::OutOfDeviceMemory),
    ("cudaErrorMemoryAllocation", Class::OutOfDeviceMemory),
    ("cudaMalloc failed: out of memory", Class::OutOfDeviceMemory),
    // vLLM: the first two where the cache has no room beside the weights, the third where other
    // programs fill the device.
    ("No available memory for the cache blocks", Class::OutOfDeviceMemory),
    ("larger than the available KV cache memory", Class::OutOfDeviceMemory),
    ("is less than desired GPU memory utilization", Class::OutOfDeviceMemory),
    // SGLang.
    ("Not enough memory. Please try to increase", Class::OutOfDeviceMemory),
    // Python, C++, and PyTorch on processors.
    ("MemoryError", Class::OutOfMemory),
    ("std::bad_alloc", Class::OutOfMemory),
    ("DefaultCPUAllocator: can't allocate memory", Class::OutOfMemory),
    ("DefaultCPUAllocator: not enough memory", Class::OutOfMemory),
    ("Cannot allocate memory", Class::OutOfMemory),
    ("ddress already in use", Class::PortTaken),
    ("EADDRINUSE", Class::PortTaken),
    // argparse, click, clap and llama.cpp.
    ("error: unrecognized arguments:", Class::WrongOptions),
    (": error: argument ", Class::WrongOptions),
    ("Error: No such option", Class::WrongOptions),
    ("error: unexpected argument", Class::WrongOptions),
    ("error: invalid argument:", Class::WrongOptions),
];

impl Hint {
    /// Returns the cause that a line names, if it is known.
    pub fn from_line(line: &str) -> Option<Self> {
        let (_, class) = KNOWN.iter().find(|(part, _)| line.contains(part))?;
        Some(Hint { class: *class, line: line.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_engines() {
        for (line, class) in [
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
                Some(Class::OutOfDeviceMemory),
            ),
            (
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
                Some(Class::OutOfDeviceMemory),
            ),
            (
                "RuntimeError: [enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.",
                Some(Class::OutOfMemory),
            ),
            ("vllm: error: unrecognized arguments: --bogus", Some(Class::WrongOptions)),
            (
                "api_server.py: error: argument --max-num-seqs: invalid int value: 'x'",
                Some(Class::WrongOptions),
            ),
            ("OSError: [Errno 98] Address already in use", Some(Class::PortTaken)),
            ("INFO: Application startup complete.", None),
        ] {
            assert_eq!(Hint::from_line(line).map(|hint| hint.class), class, "{line}");
        }
    }
}
