import { randomBytes } from 'node:crypto';
import { PLUGIN } from '../../../agent/api/messages.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import { createUnnamedNetns } from '../../../netlink/netns.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { OpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { isAlive } from './process-times.ts';

/** Timeout of ADD and DEL: longer than an ADD waits for an address. It waits only where no address is free. */
const CALL_MS = 30_000;
const IF_NAME = 'eth0';

/** Durations of ADD and DEL of each sandbox, milliseconds. */
type PodTimes = { readonly addMs: readonly number[]; readonly delMs: readonly number[] };

/** What the benchmark of sandboxes needs. */
export type PodBench = {
  readonly client: OpsClient;
  readonly pid: number;
  readonly context: CommandContext;
  readonly onPod: (done: number) => void;
};

/**
 * Creates `count` sandboxes, one after the other, until the signal aborts. Each sandbox is deleted before the next one
 * is created, and before this function returns or rejects. @throws UserError REFUSED when the agent refuses an ADD
 */
export async function benchPods(bench: PodBench, count: number): Promise<PodTimes> {
  const addMs: number[] = [];
  const delMs: number[] = [];
  for (let index = 0; index < count && !bench.context.signal.aborted; index++) {
    const times = await benchPod(bench);
    addMs.push(times.addMs);
    delMs.push(times.delMs);
    bench.onPod(index + 1);
  }
  return { addMs, delMs };
}

async function benchPod({ client, pid, context }: PodBench): Promise<{ addMs: number; delMs: number }> {
  const { clock } = context;
  const containerId = benchContainer(pid, randomBytes(6).toString('hex'));
  using netns = createUnnamedNetns();
  // A path in /proc is valid both in a container and on the host. A name in /run/netns is not, and it would remain
  // when this process is killed.
  const path = `/proc/${pid}/fd/${netns.fd}`;
  const sandbox = { containerId, ifName: IF_NAME, netns: path };
  try {
    const startMs = clock.monotonicMs();
    const { error } = await client.cni(
      'add',
      { plugin: PLUGIN.PLUGIN_ROUTE_ENI, network: BENCH_NETWORK, sandbox },
      CALL_MS,
    );
    const addMs = clock.monotonicMs() - startMs;
    if (error !== undefined) throw refused('ADD', error);
    const delStartMs = clock.monotonicMs();
    await remove(client, containerId, path);
    return { addMs, delMs: clock.monotonicMs() - delStartMs };
  } catch (error) {
    // The ADD may have failed at any point. DEL is idempotent: it does nothing for a sandbox that does not exist.
    await remove(client, containerId, path).catch(() => undefined);
    throw error;
  }
}

async function remove(client: OpsClient, containerId: string, netns: string): Promise<void> {
  const { error } = await client.cni(
    'del',
    { plugin: PLUGIN.PLUGIN_ROUTE_ENI, network: BENCH_NETWORK, sandbox: { containerId, ifName: IF_NAME, netns } },
    CALL_MS,
  );
  if (error !== undefined) throw refused('DEL', error);
}

function refused(verb: string, { code, msg, details }: { code: number; msg: string; details: string }): UserError {
  const message = `the agent refused ${verb}: ${msg} (code ${code})${details === '' ? '' : `: ${details}`}`;
  return new UserError('REFUSED', message, 'look at tke-eni status; docs/reference/errors.md has the codes');
}

/**
 * Deletes sandboxes of earlier runs that were killed: those of processes that no longer exist. Returns their number.
 */
export async function sweepLeftovers(client: OpsClient, { global }: CommandContext): Promise<number> {
  const leases = ifKnown(readAgentFacts(global.stateDir))?.journal.leases ?? [];
  const left = leases.filter(({ network, containerId }) => {
    const pid = creatorPid(containerId);
    return network === BENCH_NETWORK && pid !== undefined && !isAlive(pid);
  });
  for (const { containerId, netns } of left) await remove(client, containerId, netns);
  return left.length;
}

/** CNI network of all sandboxes that this command creates. */
const BENCH_NETWORK = 'tke-eni-bench';

const CONTAINER_PREFIX = 'tkeenibench-';

/**
 * Returns the container id of a sandbox. It contains the pid of the process that creates the sandbox, so that sandboxes
 * of a process that was killed can be found. `unique` must differ between all sandboxes.
 */
export function benchContainer(pid: number, unique: string): string {
  return `${CONTAINER_PREFIX}${pid}-${unique}`;
}

/** Returns the pid of the process that created a sandbox; undefined for a container that is not of this command. */
export function creatorPid(containerId: string): number | undefined {
  if (!containerId.startsWith(CONTAINER_PREFIX)) return undefined;
  const pid = /^(\d+)-/.exec(containerId.slice(CONTAINER_PREFIX.length))?.[1];
  return pid === undefined ? undefined : Number(pid);
}
