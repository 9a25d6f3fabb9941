// A stand-in for NVML: two devices, compiled by the tests as a shared library. Its `--cfg` flags
// select its functions and its failures. It is a crate of its own, and uses no crate but the
// standard library.
#![allow(missing_docs, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of initialisations not yet shut down: a program may initialise NVML several times.
static READY: AtomicU64 = AtomicU64::new(0);
static ENERGY: AtomicU64 = AtomicU64::new(5_000_000);

/// Handles that are no addresses: a program that looks behind them crashes.
const HANDLES: [usize; 2] = [0x11, 0x22];

fn index(device: *mut c_void) -> Option<usize> {
    if READY.load(Ordering::SeqCst) == 0 {
        return None;
    }
    HANDLES.iter().position(|handle| *handle == device as usize)
}

/// Writes as NVML does: error 2 for a number without a device, 7 for a buffer that is too small.
unsafe fn text(text: &str, buffer: *mut c_char, length: c_uint) -> c_int {
    if text.len() + 1 > length as usize {
        return 7;
    }
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, text.len());
        *buffer.add(text.len()) = 0;
    }
    0
}

unsafe fn give<T>(to: *mut T, value: T) -> c_int {
    unsafe { to.write(value) };
    0
}

/// Gives a value of a device, unless the device is lost.
unsafe fn read<T>(device: *mut c_void, to: *mut T, value: T) -> c_int {
    match lost(device) {
        Some(code) => code,
        None => unsafe { give(to, value) },
    }
}

/// The second device is lost where the flag says so.
fn lost(device: *mut c_void) -> Option<c_int> {
    match index(device) {
        None => Some(2),
        Some(1) if cfg!(one_lost) => Some(15),
        Some(_) if cfg!(all_lost) => Some(15),
        Some(_) => None,
    }
}

#[repr(C)]
pub struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

macro_rules! exports {
    ($($(#[$attribute:meta])* fn $name:ident($($of:ident: $type:ty),*) -> $result:ty $body:block)+) => {
        $($(#[$attribute])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($of: $type),*) -> $result { unsafe { $body } })+
    };
}

exports! {
    fn nvmlInit_v2() -> c_int {
        if cfg!(no_driver) {
            return 9;
        }
        READY.fetch_add(1, Ordering::SeqCst);
        0
    }

    fn nvmlShutdown() -> c_int {
        // Shut down without having been initialised: the tests would see the process end.
        if READY.fetch_sub(1, Ordering::SeqCst) == 0 {
            std::process::abort();
        }
        0
    }

    #[cfg(not(old))]
    fn nvmlErrorString(code: c_int) -> *const c_char {
        match code {
            9 => c"Driver Not Loaded".as_ptr(),
            15 => c"GPU is lost".as_ptr(),
            _ => c"Unknown Error".as_ptr(),
        }
    }

    fn nvmlSystemGetDriverVersion(buffer: *mut c_char, length: c_uint) -> c_int {
        text("575.57.08", buffer, length)
    }

    #[cfg(not(no_count))]
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
        give(count, 2)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut *mut c_void) -> c_int {
        HANDLES.get(index as usize).map_or(2, |handle| give(device, *handle as *mut c_void))
    }

    fn nvmlDeviceGetName(device: *mut c_void, buffer: *mut c_char, length: c_uint) -> c_int {
        index(device).map_or(2, |_| text("NVIDIA H100 80GB HBM3", buffer, length))
    }

    fn nvmlDeviceGetUUID(device: *mut c_void, buffer: *mut c_char, length: c_uint) -> c_int {
        let uuids = ["GPU-aaaaaaaa", "GPU-bbbbbbbb"];
        index(device).map_or(2, |index| text(uuids[index], buffer, length))
    }

    fn nvmlDeviceGetPowerUsage(device: *mut c_void, to: *mut c_uint) -> c_int {
        read(device, to, 350_500 + 1_000 * index(device).unwrap_or(0) as c_uint)
    }

    fn nvmlDeviceGetEnforcedPowerLimit(device: *mut c_void, to: *mut c_uint) -> c_int {
        read(device, to, 700_000)
    }

    /// The second device has no counter.
    #[cfg(not(old))]
    fn nvmlDeviceGetTotalEnergyConsumption(device: *mut c_void, to: *mut c_ulonglong) -> c_int {
        match (lost(device), index(device)) {
            (Some(code), _) => code,
            (None, Some(1)) => 3,
            (None, _) => give(to, ENERGY.fetch_add(2_000, Ordering::SeqCst)),
        }
    }

    fn nvmlDeviceGetTemperature(device: *mut c_void, sensor: c_int, to: *mut c_uint) -> c_int {
        match lost(device) {
            None if sensor != 0 => 2,
            _ => read(device, to, 61),
        }
    }

    fn nvmlDeviceGetClockInfo(device: *mut c_void, kind: c_int, to: *mut c_uint) -> c_int {
        match kind {
            1 => read(device, to, 1_980),
            2 => read(device, to, 2_619),
            _ => lost(device).unwrap_or(2),
        }
    }

    fn nvmlDeviceGetMemoryInfo(device: *mut c_void, to: *mut Memory) -> c_int {
        read(device, to, Memory { total: 80 << 30, free: 9 << 30, used: 71 << 30 })
    }

    fn nvmlDeviceGetUtilizationRates(device: *mut c_void, to: *mut Utilization) -> c_int {
        read(device, to, Utilization { gpu: 97, memory: 40 })
    }

    #[cfg(not(old))]
    fn nvmlDeviceGetCurrentClocksEventReasons(device: *mut c_void, to: *mut c_ulonglong) -> c_int {
        read(device, to, 0x24)
    }

    /// The name until driver 535.
    #[cfg(old)]
    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: *mut c_void, to: *mut c_ulonglong) -> c_int {
        read(device, to, 0x40)
    }
}
