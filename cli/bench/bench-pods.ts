import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { PLUGIN } from '../../agent/api/messages.ts';
import { createNetns, deleteNetns } from '../../netlink/netns.ts';
import type { OpsClient } from '../agent/ops-client.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';
import { ifKnown } from '../node/known.ts';
import { readAgentFacts } from '../node/read-agent-facts.ts';
import { BENCH_NETWORK, benchContainer, benchNetns, makerOfContainer, makerOfNetns } from './bench-names.ts';
import { isAlive } from './process-times.ts';

/** Longer than an ADD may wait for an address, which it does not where one is free. */
const CALL_MS = 30_000;
const IF_NAME = 'eth0';
const NETNS_FOLDER = '/run/netns';

/** How long each sandbox took, milliseconds. */
export type PodTimes = { readonly addMs: readonly number[]; readonly delMs: readonly number[] };

/** What makes sandboxes needs. */
export type PodBench = {
  readonly client: OpsClient;
  readonly pid: number;
  readonly context: CommandContext;
  readonly onPod: (done: number) => void;
};

/**
 * Makes `count` sandboxes, one after the other, until the signal. Each is given back before the next, and before this
 * returns or rejects. @throws CliError REFUSED when the agent refuses an ADD
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
  const { clock, global } = context;
  const unique = randomBytes(6).toString('hex');
  const name = benchNetns(pid, unique);
  const containerId = benchContainer(pid, unique);
  const netns = createNetns(name);
  try {
    // The agent does not see this container's /run/netns; descriptors of this process it does.
    const path = global.hostRoot === '/' ? netns.path : `/proc/${pid}/fd/${netns.fd}`;
    const sandbox = { containerId, ifName: IF_NAME, netns: path };
    const request = { plugin: PLUGIN.PLUGIN_ROUTE_ENI, network: BENCH_NETWORK, sandbox };
    const startMs = clock.monotonicMs();
    try {
      const { error } = await client.cni('add', request, CALL_MS);
      const addMs = clock.monotonicMs() - startMs;
      if (error !== undefined) throw refused('ADD', error);
      const delStartMs = clock.monotonicMs();
      await remove(client, containerId, path);
      return { addMs, delMs: clock.monotonicMs() - delStartMs };
    } catch (error) {
      // Whatever became of the ADD, a DEL of what is not there does nothing.
      await remove(client, containerId, path).catch(() => undefined);
      throw error;
    }
  } finally {
    netns.close();
    deleteNetns(name);
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

function refused(verb: string, { code, msg, details }: { code: number; msg: string; details: string }): CliError {
  const message = `the agent refused ${verb}: ${msg} (code ${code})${details === '' ? '' : `: ${details}`}`;
  return new CliError('REFUSED', message, 'look at tke-eni status; docs/errors.md has the codes');
}

/** Removes what a run that was killed left: sandboxes and namespaces of processes that are gone. Returns how many. */
export async function sweepLeftovers(client: OpsClient, { global }: CommandContext): Promise<number> {
  const isLeft = (pid: number | undefined): pid is number => pid !== undefined && !isAlive(pid);
  const leases = ifKnown(readAgentFacts(global.stateDir))?.journal.leases ?? [];
  const left = leases.filter(
    ({ network, containerId }) => network === BENCH_NETWORK && isLeft(makerOfContainer(containerId)),
  );
  for (const { containerId, netns } of left) await remove(client, containerId, netns);
  const names = netnsNames().filter((name) => isLeft(makerOfNetns(name)));
  for (const name of names) deleteNetns(name);
  return left.length + names.length;
}

function netnsNames(): readonly string[] {
  try {
    return readdirSync(NETNS_FOLDER);
  } catch {
    // Made with the first namespace.
    return [];
  }
}
