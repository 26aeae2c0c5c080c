import { join } from 'node:path';
import { readNodeRecord } from '../journal/node-file.ts';
import { NODE_RECORD_FILE } from '../journal/node-record.ts';
import type { PodView } from '../pods/pod-view.ts';
import type { RepairLoop } from '../repair/repair-loop.ts';
import type { NodeState } from '../state/node-state.ts';
import type { AgentParts, Conntrack } from '../state/ports.ts';
import { findEgressExempt } from './find-egress-exempt.ts';

/** Dependencies of following the Pods with EIPs. */
type EgressExemptDeps = Pick<AgentParts, 'state' | 'log'> & {
  readonly pods: Pick<PodView, 'find'>;
  readonly conntrack: Conntrack;
  readonly loop: Pick<RepairLoop, 'pass' | 'kick'>;
};

/** Poll interval, for changes of Pods and leases that were not notified. */
const POLL_MS = 60_000;

/**
 * Restores the exempt addresses of the last plan of this boot: they hold until the API server says otherwise. Never
 * throws.
 */
export function restoreEgressExempt(state: NodeState, stateDir: string, bootId: string): void {
  try {
    const record = readNodeRecord(join(stateDir, NODE_RECORD_FILE));
    if (record.bootId === bootId) state.egressExempt = record.node.egressExempt ?? [];
  } catch {
    // There is none yet, or one of another release: the API server answers soon enough.
  }
}

/**
 * Exempts the addresses of Pods that request an EIP from `--egress=node`, until aborted. The nftables table is loaded
 * again when they change, and only then. Never rejects.
 */
export async function followEgressExempt(deps: EgressExemptDeps, signal: AbortSignal): Promise<void> {
  const { state, pods, log } = deps;
  while (!signal.aborted) {
    // Begin to wait before reading, so that a change during the update of the kernel leads to another pass.
    const changed = state.demandChanged.wait(POLL_MS, signal);
    const before = new Set(state.egressExempt);
    const podOf = (namespace: string, name: string) => pods.find(namespace, name);
    const exempt = findEgressExempt({ leases: state.leases.values(), podOf, before });
    if (exempt.join() !== state.egressExempt.join()) {
      state.egressExempt = exempt;
      log.info('addresses with an EIP, exempt from --egress=node', { exempt });
      await apply(
        deps,
        exempt.filter((ip) => !before.has(ip)),
      );
    }
    await changed;
  }
}

/**
 * Makes the kernel follow. A connection that began with the node's address would go on with it, through an ENI that
 * drops such packets: its tracking entry is deleted, but only once the kernel starts no other connection like it.
 */
async function apply({ conntrack, log, loop }: EgressExemptDeps, added: readonly string[]): Promise<void> {
  try {
    if ((await loop.pass(CAUSE)).isStale) loop.kick(CAUSE);
  } catch (error) {
    log.error('the exemption of addresses with an EIP is not applied yet', { error });
    loop.kick(CAUSE);
  }
  if (added.length > 0) await conntrack.flush(added);
}

const CAUSE = 'EIP';
