import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { systemClock } from '../../runtime/clock.ts';
import { envOf } from './child-env.ts';

/** What a long-running child is started with. */
export type ChildOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Called with what it prints on standard output, as it comes. */
  readonly onStdout?: (text: string) => void;
};

/** How a child ended. */
export type ChildExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** Longest that `stop` waits for a polite end before SIGKILL. */
const STOP_GRACE_MS = 15_000;

/** Owns one long-running child process; `stop` ends it for certain. */
export class Child {
  readonly argv: readonly string[];
  /** Settles when the process is gone and its pipes are closed. Never rejects. */
  readonly exited: Promise<ChildExit>;
  #child: ChildProcess;
  #stdout = '';
  #stderr = '';
  #exit: ChildExit | undefined;

  constructor(argv: readonly string[], options: ChildOptions = {}) {
    const [command = '', ...args] = argv;
    this.argv = argv;
    this.#child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: options.env ?? envOf(argv),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    this.#collect(this.#child.stdout, (text) => {
      this.#stdout += text;
      options.onStdout?.(text);
    });
    this.#collect(this.#child.stderr, (text) => {
      this.#stderr += text;
    });
    this.#child.stdin?.on('error', () => undefined);
    this.exited = new Promise((resolve) => {
      const ended = (exit: ChildExit): void => {
        this.#exit ??= exit;
        resolve(this.#exit);
      };
      this.#child.on('error', (error) => {
        this.#stderr += error.message;
        ended({ code: null, signal: null });
      });
      this.#child.on('exit', (code, signal) => ended({ code, signal }));
    });
  }

  /** Process id, 0 when it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** True until the process has ended. */
  get isRunning(): boolean {
    return this.#exit === undefined;
  }

  /** Everything printed on standard output so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Everything printed on standard error so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Writes a line to the child's standard input. */
  writeLine(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Sends a signal; a process that has ended already is not an error. */
  kill(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child.kill(signal);
  }

  /** Ends the process: `signal`, then SIGKILL after `graceMs` (default 15,000). Idempotent. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', graceMs = STOP_GRACE_MS): Promise<ChildExit> {
    this.kill(signal);
    // A stopped process (SIGSTOP) takes SIGTERM only once it goes on.
    this.kill('SIGCONT');
    const timer = new AbortController();
    await Promise.race([this.exited, systemClock.sleep(graceMs, timer.signal).catch(() => undefined)]);
    timer.abort();
    this.kill('SIGKILL');
    return this.exited;
  }

  #collect(stream: Readable | null, add: (text: string) => void): void {
    stream?.setEncoding('utf8').on('data', add);
  }
}
