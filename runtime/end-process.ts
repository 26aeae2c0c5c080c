/** How long a process that ends waits for what is still open, milliseconds. */
const GRACE_MS = 500;

/** What of `process` ends it. */
type EndingProcess = { exitCode?: number | string | null | undefined; exit(code: number): never };

/**
 * Ends a process with an exit code as soon as nothing is open any more, and after half a second whatever is. Not by `exit` at
 * once: it joins V8's worker threads without a collection of garbage that one of them may wait for, and then the process never
 * ends. Seen with Node 26 where a process ends while its code is still being compiled, shortly after its start.
 */
export function endProcess(ending: EndingProcess, code: number): void {
  ending.exitCode = code;
  setTimeout(() => ending.exit(code), GRACE_MS).unref();
}
