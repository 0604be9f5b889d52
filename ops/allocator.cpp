// jemalloc's settings, read by its runtime at start: messages are made on one thread and freed on another,
// which costs the C library's allocator a third of all CPU time. Two arenas and a short decay keep the
// resident size near the C library's.
extern "C" {
const char* malloc_conf = "narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0,background_thread:true";
}
