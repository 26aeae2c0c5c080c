import { Child, type ChildOptions } from './child.ts';
import { type RunOptions, type RunResult, run, tryRun } from './run.ts';

/** One object of an `ip -j` or `nft -j` answer. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** How `ping` tries. */
type PingOptions = {
  /** Source address or interface (`ping -I`). */
  readonly from?: string;
  /** Echo requests; default 1. One answer is success. */
  readonly count?: number;
  /** Milliseconds to wait for an answer; default 3,000: a lost first neighbour solicitation is repeated after 1 s. */
  readonly waitMs?: number;
};

/**
 * A network namespace seen from outside through iproute2 and nsenter, so that it judges our own netlink code.
 * It does not own the namespace.
 */
export class NetnsView {
  readonly name: string;
  /** A path that nsenter opens: `/run/netns/<name>` or `/proc/<pid>/ns/net`. */
  readonly path: string;

  constructor(name: string, path = `/run/netns/${name}`) {
    this.name = name;
    this.path = path;
  }

  /** Command line that runs `argv` in this namespace. */
  argv(argv: readonly string[]): readonly string[] {
    // Not `ip netns exec`: that remounts /sys and hides the cgroups.
    return ['nsenter', `--net=${this.path}`, '--', ...argv];
  }

  /** Runs a command in this namespace; it must succeed. @throws RunError */
  run(argv: readonly string[], options?: RunOptions): Promise<string> {
    return run(this.argv(argv), options);
  }

  /** Runs a command in this namespace and returns its answer, failure included. */
  tryRun(argv: readonly string[], options?: RunOptions): Promise<RunResult> {
    return tryRun(this.argv(argv), options);
  }

  /** Starts a long-running process in this namespace; the caller stops it. */
  start(argv: readonly string[], options?: ChildOptions): Child {
    return new Child(this.argv(argv), options);
  }

  /** Runs one `ip` command: `ip('route', 'flush', 'table', '4007')`. @throws RunError */
  ip(...args: readonly string[]): Promise<string> {
    return this.run(['ip', ...args]);
  }

  /** Runs `ip -j <args>`: `ipJson('-d', 'link')`. A table that does not exist is an empty list. @throws RunError */
  async ipJson(...args: readonly string[]): Promise<readonly JsonObject[]> {
    const result = await this.tryRun(['ip', '-j', ...args]);
    // iproute2 answers an empty table with this error.
    if (result.code !== 0 && /FIB table does not exist|Dump terminated/.test(result.stderr)) return [];
    if (result.code !== 0) throw new Error(`ip -j ${args.join(' ')} in ${this.name}: ${result.stderr.trim()}`);
    return parseList(result.stdout);
  }

  /**
   * Runs many `ip` commands in one process. Rules take their family from `family`, all else from the addresses.
   * @throws RunError naming the line of the first that failed
   */
  async ipBatch(lines: readonly string[], family: 4 | 6 = 4): Promise<void> {
    const inet6 = family === 6 ? ['-6'] : [];
    if (lines.length > 0) await this.run(['ip', ...inet6, '-batch', '-'], { input: `${lines.join('\n')}\n` });
  }

  /** Loads an nftables script in one transaction. @throws RunError */
  async nft(script: string): Promise<void> {
    await this.run(['nft', '-f', '-'], { input: script });
  }

  /** Runs `nft -j list <args>`; undefined when the named object does not exist. */
  async nftJson(...args: readonly string[]): Promise<readonly JsonObject[] | undefined> {
    const result = await this.tryRun(['nft', '-j', 'list', ...args]);
    if (result.code !== 0) return undefined;
    const answer: unknown = JSON.parse(result.stdout);
    return isObject(answer) && Array.isArray(answer['nftables']) ? answer['nftables'].filter(isObject) : undefined;
  }

  /** Sets sysctls: `{'net/ipv4/ip_forward': '1'}`. Slashes part the name, so interface names may hold dots. */
  async sysctl(values: Readonly<Record<string, string | number>>): Promise<void> {
    const lines = Object.entries(values).map(([key, value]) => `echo ${value} > /proc/sys/${key}\n`);
    if (lines.length > 0) await this.run(['sh', '-e'], { input: lines.join('') });
  }

  /** Reports whether at least one echo request is answered. */
  async ping(address: string, options: PingOptions = {}): Promise<boolean> {
    const { from, count = 1, waitMs = 3_000 } = options;
    const source = from === undefined ? [] : ['-I', from];
    const argv = ['ping', '-n', '-q', '-i', '0.2', '-c', `${count}`, '-W', `${waitMs / 1_000}`, ...source, address];
    return (await this.tryRun(argv)).code === 0;
  }
}

/** Reports whether a parsed JSON value is an object with named members. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseList(text: string): readonly JsonObject[] {
  // iproute2 prints nothing at all for an empty dump of some objects.
  const answer: unknown = text.trim() === '' ? [] : JSON.parse(text);
  // `ip -j` may print empty objects between the real ones.
  return Array.isArray(answer) ? answer.filter((item) => isObject(item) && Object.keys(item).length > 0) : [];
}
