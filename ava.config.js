// Test files are TypeScript that Node runs as it is. What needs a kernel makes its own network namespaces, so files may
// run side by side. A file is a process, not a thread: ffi-rs crashes when a thread that loaded it ends, and setns(2) and
// chdir(2) are no business of a thread.
export default {
  extensions: ['ts'],
  files: ['test/**/*.test.ts'],
  workerThreads: false,
  require: ['./tools/record-cost.ts'],
  timeout: '2m',
};
