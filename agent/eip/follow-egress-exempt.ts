import { join } from 'node:path';
import type { Logger } from '../../runtime/log.ts';
import { readNodeRecord } from '../journal/node-file.ts';
import { NODE_RECORD_FILE } from '../journal/node-record.ts';
import type { NodeState } from '../node-state.ts';
import type { PodView } from '../pods/pod-view.ts';
import type { Conntrack } from '../ports.ts';
import type { RepairLoop } from '../repair/repair-loop.ts';
import { findEgressExempt } from './find-egress-exempt.ts';

/** What following the Pods with EIPs needs. */
export type EgressExemptDeps = {
  readonly state: NodeState;
  readonly pods: Pick<PodView, 'find'>;
  readonly conntrack: Conntrack;
  readonly log: Logger;
  readonly loop: Pick<RepairLoop, 'pass' | 'kick'>;
};

/** Pods and leases tell of themselves; this is for what nobody told. */
const LOOK_EACH_MS = 60_000;

/**
 * Takes up what was exempt when the node was last planned in this boot: until the API server says otherwise that is what
 * holds. Never throws.
 */
export function restoreEgressExempt(state: NodeState, stateDir: string, bootId: string): void {
  try {
    const record = readNodeRecord(join(stateDir, NODE_RECORD_FILE));
    if (record.bootId === bootId) state.egressExempt = record.node.egressExempt ?? [];
  } catch {
    // None yet, or of another release: the API server says soon enough.
  }
}

/**
 * Keeps the addresses of Pods that ask for an EIP out of `--egress=node` until aborted. The nftables table is loaded anew
 * when they change, and only then. Never rejects.
 */
export async function followEgressExempt(deps: EgressExemptDeps, signal: AbortSignal): Promise<void> {
  const { state, pods, log } = deps;
  while (!signal.aborted) {
    // Begun before the look, so that what changes while the kernel follows is looked at again.
    const woken = state.demandChanged.wait(LOOK_EACH_MS, signal);
    const before = new Set(state.egressExempt);
    const podOf = (namespace: string, name: string) => pods.find(namespace, name);
    const exempt = findEgressExempt({ leases: state.leases.values(), podOf, before });
    if (exempt.join() !== state.egressExempt.join()) {
      state.egressExempt = exempt;
      log.info('addresses that leave by their ENI for they have an EIP', { exempt });
      await apply(
        deps,
        exempt.filter((ip) => !before.has(ip)),
      );
    }
    await woken;
  }
}

/**
 * A connection that began with the node's address would go on with it, by an ENI that lets no such packet out: it is
 * forgotten, but only once the kernel begins no other like it.
 */
async function apply({ conntrack, log, loop }: EgressExemptDeps, added: readonly string[]): Promise<void> {
  try {
    if ((await loop.pass(CAUSE)).isStale) loop.kick(CAUSE);
  } catch (error) {
    log.error('the kernel does not follow the Pods with EIPs yet', { error });
    loop.kick(CAUSE);
  }
  if (added.length > 0) await conntrack.flush(added);
}

const CAUSE = 'EIP';
