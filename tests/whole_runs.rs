//! Whole runs on virtual time against the mock engine in memory, through real components and a real HTTP client and server: exact numbers.
