import type { Lease } from '../../../agent/journal/lease.ts';
import { locateBridge } from '../../../dataplane/locate-bridge.ts';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { BRIDGE_NAME } from '../../../dataplane/numbers.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** The GlobalRoute Pods of a node, as far as the agent and the kernel show them. */
export type GrOutline = {
  /** The node as the agent last planned it. */
  readonly planned: NodeNetwork | undefined;
  /** Leases of GlobalRoute Pods. */
  readonly leases: readonly (Lease & { readonly block: NonNullable<Lease['block']> })[];
  /** The present blocks; undefined where they are not known. */
  readonly blocks: readonly string[] | undefined;
  readonly isDefault: boolean;
  /** The bridge; undefined while there is none. */
  readonly bridge: LinkMessage | undefined;
};

/** Gathers what is known about GlobalRoute Pods; undefined where there are none, and none would be by default. */
export function buildGrOutline({ node, status }: Pick<DoctorFacts, 'node' | 'status'>): GrOutline | undefined {
  const agent = ifKnown(node.agent);
  const planned = agent === undefined ? undefined : ifKnown(agent.node)?.node;
  const live = ifKnown(status)?.bridge;
  const leases = (agent?.journal.leases ?? []).flatMap((lease) =>
    lease.block === undefined ? [] : [{ ...lease, block: lease.block }],
  );
  if (live === undefined && planned?.bridge === undefined && leases.length === 0) return undefined;
  const { ifindex, isPresent } = locateBridge(node.host.links, planned?.bridge?.name ?? BRIDGE_NAME);
  const recorded = planned?.podCidrs.filter(({ isCurrent }) => isCurrent).map(({ cidr }) => cidr);
  return {
    planned,
    leases,
    blocks: live?.podCidrs ?? recorded,
    isDefault: live?.defaultNetwork === 'tke-bridge',
    bridge: node.host.links.find((link) => isPresent && link.ifindex === ifindex),
  };
}

/** Why a check of GlobalRoute Pods does not apply. */
export const NO_GR_PODS = 'this node has no GlobalRoute Pods, and none would be by default';
