import { spawn } from 'node:child_process';
import { startTimer } from '../../runtime/clock.ts';
import { envOf } from './child-env.ts';

/** How a finished child process ended and what it printed. */
export type RunResult = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** What a child process gets; every wait is bounded. */
export type RunOptions = {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Milliseconds until SIGKILL; default 60,000. */
  readonly timeoutMs?: number;
};

/** Says which command failed, how, and with what last words. */
export class RunError extends Error {
  readonly code: 'COMMAND_FAILED' | 'COMMAND_TIMED_OUT';
  readonly result: RunResult;

  constructor(argv: readonly string[], result: RunResult, timedOut: boolean) {
    const how = timedOut ? 'did not end in time' : `ended with ${result.code ?? result.signal}`;
    super(`${argv.join(' ')} ${how}: ${(result.stderr || result.stdout).trim().slice(-2000)}`);
    this.name = 'RunError';
    this.code = timedOut ? 'COMMAND_TIMED_OUT' : 'COMMAND_FAILED';
    this.result = result;
  }
}

/** Longest wait for a command that a test runs, unless it says otherwise; several clusters may share two cores. */
const DEFAULT_TIMEOUT_MS = 60_000;

/**
 * Runs a command to its end and returns whatever it answered, failure included.
 * @throws RunError COMMAND_TIMED_OUT after `timeoutMs`; the child is killed then.
 */
export function tryRun(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const [command = '', ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: options.env ?? envOf(argv),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    let stdout = '';
    let stderr = '';
    let timedOut = false;
    const timer = startTimer(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    // A command that does not read its input closes the pipe; its exit status says enough.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
    child.on('error', (cause) => {
      timer.cancel();
      reject(new Error(`${command}: cannot be started: ${cause.message}`, { cause }));
    });
    child.on('close', (code, signal) => {
      timer.cancel();
      const result = { code, signal, stdout, stderr };
      if (timedOut) reject(new RunError(argv, result, true));
      else resolve(result);
    });
  });
}

/**
 * Runs a command that must succeed and returns its standard output.
 * @throws RunError COMMAND_FAILED when it ends with anything but 0, COMMAND_TIMED_OUT after `timeoutMs`.
 */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const result = await tryRun(argv, options);
  if (result.code !== 0) throw new RunError(argv, result, false);
  return result.stdout;
}
