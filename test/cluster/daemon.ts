import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { killQuietly } from '../../sim/support/run-names.ts';
import { waitUntil } from '../support/wait-until.ts';
import { childrenOf, DAEMON_ENV, type Machine } from './machine.ts';

/** How a daemon is started. */
type DaemonSpec = {
  readonly name: string;
  /** Where it runs. */
  readonly machine: Machine;
  /** Asked at each start. */
  readonly argv: () => readonly string[];
  /** File on this machine that gets all that it writes, over all its starts. */
  readonly logPath: string;
};

/** A long-running program of the cluster that can be killed and started again. */
export class Daemon {
  readonly name: string;
  #spec: DaemonSpec;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();

  constructor(spec: DaemonSpec) {
    this.name = spec.name;
    this.#spec = spec;
  }

  /** Starts it; nothing happens when it runs. Readiness is not waited for. */
  start(): void {
    if (this.isRunning) return;
    const [command = '', ...args] = this.#spec.machine.enter(this.#spec.argv());
    const log = openSync(this.#spec.logPath, 'a');
    const child = spawn(command, args, { stdio: ['ignore', log, log], env: DAEMON_ENV });
    closeSync(log);
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.on('exit', () => resolve());
      child.on('error', () => resolve());
    });
  }

  /** True from its start to its end, whoever ends it. */
  get isRunning(): boolean {
    const child = this.#child;
    return child !== undefined && child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Its process id as this machine has it; 0 while it does not run. */
  get pid(): number {
    // nsenter enters a PID namespace by a child; that is the program.
    return this.isRunning ? (childrenOf(this.#child?.pid ?? 0)[0] ?? 0) : 0;
  }

  /** Ends it, by default without a chance to tidy up, and waits for its end. Idempotent. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.isRunning) return;
    const pid = await waitUntil(() => !this.isRunning || (this.pid > 0 && this.pid), {
      what: `${this.name}: its process`,
    });
    if (pid !== true) signalQuietly(pid, signal);
    const timer = new AbortController();
    const late = sleep(STOP_GRACE_MS, 'late', { signal: timer.signal }).catch(() => undefined);
    const seen = await Promise.race([this.#exited, late]);
    timer.abort();
    if (seen === 'late') for (const one of [this.pid, this.#child?.pid ?? 0]) if (one !== 0) killQuietly(one);
    await this.#exited;
  }

  /** Ends it as an init system does, and starts it again. */
  async restart(): Promise<void> {
    await this.kill('SIGTERM');
    this.start();
  }

  /** All that it wrote, over all its starts. */
  logs(): string {
    return existsSync(this.#spec.logPath) ? readFileSync(this.#spec.logPath, 'utf8') : '';
  }
}

/** Longest that a polite end is waited for before SIGKILL, milliseconds. */
const STOP_GRACE_MS = 10_000;

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  if (pid === 0) return;
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
