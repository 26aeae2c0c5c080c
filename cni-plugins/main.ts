import { basename } from 'node:path';
import { type Exit, exitWith, run } from './run.ts';
import { readAll, writeAll } from './skel/stdio.ts';

// The one executable behind tke-route-eni, tke-eni-ipamc and tke-direct-eni. Standard output is the protocol and
// standard error stays empty. No console and no process.stdout: their first use costs 3.5 ms.

process.on('uncaughtException', (error) => leave(exitWith(error)));

run({
  // Not execPath: through a symbolic link that is the target's name.
  name: basename(process.argv0),
  args: process.argv.slice(2),
  env: process.env,
  readStdin: () => readAll(0),
  nowMs: () => Date.now(),
  bootMs: () => Number(process.hrtime.bigint() / 1_000_000n),
}).then(leave, (error: unknown) => leave(exitWith(error)));

function leave({ code, stdout }: Exit): void {
  let exitCode: number = code;
  try {
    writeAll(1, stdout);
  } catch {
    // The runtime has closed its end, so nobody can be told; the exit code still can.
    exitCode = 1;
  }
  // Leaves at once: nothing of ours waits in exit handlers, and a sandbox waits for us.
  (process as WithReallyExit).reallyExit?.(exitCode);
  process.exit(exitCode);
}

/** Node's own, undocumented way out; exit() ends in it. */
type WithReallyExit = NodeJS.Process & { readonly reallyExit?: (code: number) => void };
