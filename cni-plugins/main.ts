import { basename } from 'node:path';
import { type Exit, exitWith, run } from './run.ts';
import { readAll, writeAll } from './skel/stdio.ts';

// The one executable behind tke-route-eni, tke-eni-ipamc and tke-direct-eni. Standard output carries the protocol;
// standard error stays empty. No console and no process.stdout: their first use costs 3.5 ms.

process.on('uncaughtException', (error) => exitProcess(exitWith(error)));

run({
  // Not execPath: for a symbolic link that is the name of its target.
  name: basename(process.argv0),
  args: process.argv.slice(2),
  env: process.env,
  readStdin: () => readAll(0),
  nowMs: () => Date.now(),
  bootMs: () => Number(process.hrtime.bigint() / 1_000_000n),
}).then(exitProcess, (error: unknown) => exitProcess(exitWith(error)));

function exitProcess({ code, stdout }: Exit): void {
  let exitCode: number = code;
  try {
    writeAll(1, stdout);
  } catch {
    // The runtime has closed its end of the pipe. Only the exit code can still report the failure.
    exitCode = 1;
  }
  // Exit at once: there are no exit handlers to run, and the runtime waits for the process.
  (process as WithReallyExit).reallyExit?.(exitCode);
  process.exit(exitCode);
}

/** Node's undocumented function for an immediate exit; exit() ends with it. */
type WithReallyExit = NodeJS.Process & { readonly reallyExit?: (code: number) => void };
