// What the leak checker must not report: GLib leaves the old table behind whenever its table of names grows, for
// readers without a lock; x265 leaks with every encoder, ONNX Runtime once. Weak: another folder may know more.
extern "C" __attribute__((weak)) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:^g_malloc$\nleak:libonnxruntime\nleak:libx265\n"; }
