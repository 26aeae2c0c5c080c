import { existsSync, readFileSync } from 'node:fs';
import { Child } from '../../sim/support/child.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { type RunOptions, type RunResult, run, tryRun } from '../../sim/support/run.ts';
import { waitUntil } from '../support/wait-until.ts';

/** What daemons and all that they exec see of our environment: containerd hands its own to CNI plugins. */
export const DAEMON_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  // wget of busybox names no signature algorithms, which means SHA-1; an API server of Go 1.25 or newer refuses that.
  GODEBUG: 'tlssha1=1',
} as const;

/** What a machine is made of. */
type MachineSpec = {
  readonly name: string;
  readonly netns: NetnsView;
  /** Lines for sh that make the machine's mounts; run at each boot, in its namespaces, as its process 1. */
  readonly mounts: readonly string[];
};

/**
 * A machine as its processes see it: a network namespace that somebody else owns, and a mount and a PID namespace of its
 * own, which live from boot to halt. Process 1 takes in orphans, as an init system does.
 */
export class Machine {
  readonly name: string;
  readonly netns: NetnsView;
  #spec: MachineSpec;
  #holder: Child | undefined;
  #initPid = 0;

  constructor(spec: MachineSpec) {
    this.#spec = spec;
    this.name = spec.name;
    this.netns = spec.netns;
  }

  /** Makes the namespaces and process 1. @throws Error with what the shell said */
  async boot(): Promise<void> {
    const script = ['set -e', ...this.#spec.mounts, 'echo ready', 'exec tini -- sleep infinity'].join('\n');
    const unshare = [
      'unshare',
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      '--propagation',
      'private',
    ];
    const holder = new Child(this.netns.argv([...unshare, 'sh', '-c', script]), { env: DAEMON_ENV });
    this.#holder = holder;
    this.#initPid = await waitUntil(
      () => {
        if (!holder.isRunning) throw new Error(`${this.name} does not boot: ${holder.stderr}`);
        return holder.stdout.includes('ready') && childrenOf(holder.pid)[0];
      },
      { what: `${this.name}: process 1`, timeoutMs: 30_000, explain: () => holder.stderr },
    );
  }

  /** True from boot to halt. */
  get isUp(): boolean {
    return this.#holder?.isRunning === true;
  }

  /** Process 1 as the machine under us numbers it. @throws Error when it is not up */
  get initPid(): number {
    if (!this.isUp) throw new Error(`${this.name}: is not up`);
    return this.#initPid;
  }

  /** Command line that runs `argv` on it. */
  enter(argv: readonly string[]): readonly string[] {
    return ['nsenter', '-t', String(this.initPid), '-m', '-p', '-n', '--', ...argv];
  }

  /** Runs a command on it that must succeed; answers with its standard output. @throws RunError */
  exec(argv: readonly string[], options: RunOptions = {}): Promise<string> {
    return run(this.enter(argv), { env: DAEMON_ENV, ...options });
  }

  /** Runs a command on it and returns its answer, failure included. */
  tryExec(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    return tryRun(this.enter(argv), { env: DAEMON_ENV, ...options });
  }

  /** Where a path of the machine lies for us while it is up; links with absolute targets are not followed. */
  insidePath(path: string): string {
    // /var/run is such a link.
    return `/proc/${this.initPid}/root${path.replace(/^\/var\/run\//, '/run/')}`;
  }

  /** Kills process 1, and so every process, mount and unnamed network namespace of it, as a power cut does. Idempotent. */
  async halt(): Promise<void> {
    // unshare kills its child, and a PID namespace ends with its process 1.
    await this.#holder?.stop('SIGKILL');
    const init = this.#initPid;
    await waitUntil(() => init === 0 || !existsSync(`/proc/${init}`), {
      what: `${this.name}: end of its processes`,
      timeoutMs: 30_000,
    });
  }
}

/** Child processes of the main thread of a process. @see proc(5), /proc/pid/task/tid/children */
export function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    // It has ended.
    return [];
  }
}
