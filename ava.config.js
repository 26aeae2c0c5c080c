// Test files are TypeScript that Node runs as it is. A file is one process; what needs a kernel makes its own
// network namespaces, so files may run side by side.
export default {
  extensions: ['ts'],
  files: ['test/**/*.test.ts'],
  timeout: '2m',
};
