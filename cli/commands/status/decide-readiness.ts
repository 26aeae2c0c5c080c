import { CNI_CODE } from '../../../agent/api/cni-code.ts';
import type { SummaryReply } from '../../../agent/api/ops-messages.ts';
import type { PoolView } from '../pool/pool-view.ts';

/**
 * Whether the node can take another Pod now. limited: it can, with limits; waits: once supply that was asked for
 * arrives; full: once a Pod ends; no: not until the reason is gone.
 */
export type Readiness = {
  readonly kind: 'yes' | 'limited' | 'waits' | 'full' | 'no';
  /** One line. */
  readonly text: string;
  /** More lines about the reason. */
  readonly details: readonly string[];
};

/**
 * Decides whether the node can take another Pod. The agent's own STATUS does not count addresses: kubelet would evict
 * the Pods of a node that is merely full. A person wants to read it.
 */
export function decideReadiness({ summary, pool }: StatusInput): Readiness | undefined {
  if (summary === undefined) return undefined;
  const { code, msg, details } = summary.status ?? { code: 0, msg: '', details: '' };
  if (code !== 0) {
    const isPartly = code === CNI_CODE.limitedConnectivity;
    const text = `${isPartly ? 'limited' : 'no'}: ${msg} (code ${code})`;
    return { kind: isPartly ? 'limited' : 'no', text, details: details.split('\n').filter((line) => line !== '') };
  }
  return summary.bridge?.defaultNetwork === 'tke-bridge' ? bridgeReadinessOf(pool) : readinessOf(pool);
}

/** Where Pods are on the bridge by default, they need an address of the present block and none of an ENI. */
function bridgeReadinessOf({ blocks = [] }: PoolView): Readiness {
  const current = blocks.filter(({ isCurrent }) => isCurrent);
  if (current.length === 0)
    return { kind: 'no', text: 'no: the node has no podCIDR with addresses for Pods', details: [] };
  if (current.some(({ free, cooling }) => free + cooling > 0)) return { kind: 'yes', text: 'yes', details: [] };
  const names = current.map(({ cidr, total }) => `each of the ${total} addresses of podCIDR ${cidr}`).join(', ');
  return { kind: 'full', text: `full: ${names} is in use`, details: [] };
}

type StatusInput = { readonly summary?: Pick<SummaryReply, 'status' | 'bridge'>; readonly pool: PoolView };

function readinessOf(pool: PoolView): Readiness {
  const { enis, addresses, demand, asked = demand, supplyProblem } = pool;
  const serving = new Set(enis.filter(isServing).map(({ eniId }) => eniId));
  const present = addresses.filter(({ use, eniId }) => serving.has(eniId) && use !== 'offered' && use !== 'releasing');
  // Without free addresses a Pod gets the one that cools down for the longest time, after some seconds.
  const isAvailable = present.some(({ use }) => use === 'free' || use === 'cooling');
  // A node of exclusive ENIs alone has no shared ENI.
  if (isAvailable || enis.length === 0) return { kind: 'yes', text: 'yes', details: [] };
  const no = (why: string): Readiness => ({ kind: 'no', text: `no: no address is free, and ${why}`, details: [] });
  if (serving.size === 0) return no('no ENI serves new Pods: they drain, are not attached or not set up');
  if (supplyProblem !== '') return no(supplyProblem);
  if (demand !== undefined && demand > present.length) {
    const request = asked === demand ? `${demand} are asked for` : `${demand} are wanted, ${asked} asked for so far`;
    const text = `not now: no address is free; ${request}, ${present.length} are there`;
    return { kind: 'waits', text, details: [] };
  }
  const text = `full: each of the ${present.length} addresses that this node may have is in use or kept`;
  return { kind: 'full', text, details: [] };
}

function isServing({ attached, draining, ready }: PoolView['enis'][number]): boolean {
  return attached && !draining && ready !== false;
}
