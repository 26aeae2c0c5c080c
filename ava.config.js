// Test files are TypeScript that Node runs as it is. What needs a kernel makes its own network namespaces, so files may
// run side by side. They are processes, not threads: ffi-rs crashes when a thread that loaded it ends, and setns(2) and
// chdir(2) are no business of a thread.

import childProcess from 'node:child_process';
import TapReporter from './node_modules/ava/lib/reporters/tap.js';
import { SHARED_VARIABLE } from './tools/bundled-ava.ts';
import { reportTimeouts } from './tools/report-timeouts.ts';
import { sharingFork } from './tools/share-processes.ts';

// Files that take longest, the longest first: begun last, one of them would run alone while a core idles. `make test` prints
// at the end of each suite what its files took.
const LONGEST = [
  'e2e/demo',
  'e2e/gr-pods',
  'e2e/cni-many',
  'e2e/journal-damaged',
  'e2e/packets',
  'e2e/system-partition',
  'e2e/cli-explain',
  'e2e/cli-doctor',
  'cli/commands/diff/remote/answers',
  'runtime/http-endpoints',
  'simulation/agents',
  'simulation/scripts',
  'simulation/services',
  'simulation/stories',
  'simulation/crash',
  'protocol/kept-addresses',
];

// Where it may, a process that has run a file runs another.
if (process.env[SHARED_VARIABLE] !== undefined) childProcess.fork = sharingFork(childProcess.fork);

reportTimeouts(TapReporter);

/** Tells how early a file is begun; what is not among the longest keeps its place in the alphabet. */
const rank = (file) => {
  const at = LONGEST.findIndex((name) => file.endsWith(`/${name}.test.ts`) || file.endsWith(`/${name}.long.test.ts`));
  return at < 0 ? LONGEST.length : at;
};

export default {
  extensions: ['ts'],
  files: ['test/**/*.test.ts'],
  workerThreads: false,
  // tools/run-tests.ts has AVA itself read from few files.
  nodeArguments: process.env['TKE_ENI_BUNDLED_AVA'] === undefined ? [] : ['--import=./tools/load-bundled-ava.ts'],
  require: ['./tools/begin-file.ts'],
  timeout: '2m',
  sortTestFiles: (a, b) => rank(a) - rank(b) || a.localeCompare(b, 'en'),
};
