import { INTENTS } from '../../../crd/intent.ts';
import type { NodeEniAddress, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import {
  type EniSituation,
  type NodeSituation,
  type PoolSituation,
  type RecordedCall,
  type Stay,
  type StayAddress,
  whyEniStays,
} from '../pool/why-eni-stays.ts';
import type { ClusterNec, WorkIntent } from './cluster-facts.ts';
import { workIntentOf } from './decode-objects.ts';

/**
 * Lists for each ENI of a NodeENIConfig why it is not returned. Cooling addresses do not show: they count as idle.
 * @param podOf `namespace/name` of the Pod with an address in canonical form; no Pod has any where Pods may not be read
 */
export function findEniStays(
  nec: ClusterNec,
  podOf: ReadonlyMap<string, string>,
  nowMs: number,
): ReadonlyMap<string, readonly Stay[]> {
  const enis = (nec.status.eniInfos ?? []).map((eni) => ({ eni, addresses: addressesOf(nec, eni, podOf) }));
  const intents = (nec.status.intents ?? []).map((intent) => ({
    enis: [intent.eniID, intent.targetENIID],
    call: callOf(workIntentOf(intent), nowMs),
  }));
  const node = nodeOf(nec);
  const pools = { shared: poolOf(nec, enis, 'shared'), exclusive: poolOf(nec, enis, 'exclusive') };
  return new Map(
    enis.map(({ eni, addresses }) => {
      const instanceCall = intents.find(
        ({ enis: ids, call }) => OF_INSTANCE.includes(call.action) && !ids.includes(eni.eniID),
      );
      const stays = whyEniStays({
        kind: kindOf(eni),
        state: STATES[eni.state],
        isDraining: eni.draining === true,
        addresses: addresses.map(({ stay }) => stay),
        pool: pools[kindOf(eni)],
        node: { ...node, instanceCall: instanceCall?.call },
        calls: intents.filter(({ enis: ids }) => ids.includes(eni.eniID)).map(({ call }) => call),
        refusal: refusalOf(nec, eni.eniID),
      });
      return [eni.eniID, stays];
    }),
  );
}

const STATES = { Attached: 'attached', Attaching: 'attaching', Detaching: 'detaching' } as const;
/** Calls of which an instance accepts one at a time. */
const OF_INSTANCE: readonly string[] = ['CreateNetworkInterface', 'AttachNetworkInterface', 'DetachNetworkInterface'];

type Kind = EniSituation['kind'];
type Counted = { readonly stay: StayAddress; readonly isStatic: boolean };

function kindOf({ mode }: NodeEniInfo): Kind {
  return mode === 'direct-eni' ? 'exclusive' : 'shared';
}

function addressesOf(nec: ClusterNec, eni: NodeEniInfo, podOf: ReadonlyMap<string, string>): readonly Counted[] {
  if (kindOf(eni) === 'exclusive') return [exclusiveOf(nec, eni, podOf)];
  const offers = new Map((nec.spec.releasableIPs ?? []).map(({ ip, assignmentID }) => [ip, assignmentID]));
  return (eni.addresses ?? []).flatMap((address) => {
    const owner = podOf.get(canonicalAddress(address.ip));
    // An IPv6 address comes and goes with its IPv4 address; it counts only where a Pod has it.
    if (owner === undefined && address.ip.includes(':')) return [];
    const isOffered = address.state === 'Assigned' && offers.get(address.ip) === address.assignmentID;
    const stay = registeredOr(nec, [canonicalAddress(address.ip)], stayOf(address, owner, isOffered));
    return [{ stay, isStatic: address.claim !== undefined }];
  });
}

function stayOf({ state, claim }: NodeEniAddress, owner: string | undefined, isOffered: boolean): StayAddress {
  if (owner !== undefined) return { use: 'in-use', owner };
  if (state === 'Releasing') return { use: 'releasing' };
  if (claim !== undefined) return { use: 'static', owner: `${claim.namespace}/${claim.name}` };
  return { use: isOffered ? 'offered' : 'idle' };
}

/** An address without a Pod that a load balancer may still have stays for that reason, offered or not. */
function registeredOr({ registeredIps = [] }: ClusterNec, ips: readonly string[], stay: StayAddress): StayAddress {
  const isOpen = stay.use === 'idle' || stay.use === 'offered';
  return isOpen && registeredIps.some((ip) => ips.includes(canonicalAddress(ip))) ? { use: 'registered' } : stay;
}

/** Returns the one address that stands for an exclusive ENI. */
function exclusiveOf(nec: ClusterNec, eni: NodeEniInfo, podOf: ReadonlyMap<string, string>): Counted {
  const { eniID, assignmentID, claim, state } = eni;
  const ips = [eni.primaryIP, eni.primaryIPv6].flatMap((ip) => (ip === undefined ? [] : canonicalAddress(ip)));
  const owner = ips.map((ip) => podOf.get(ip)).find((pod) => pod !== undefined);
  const isOffered = (nec.spec.releasableENIs ?? []).some(
    (offer) => offer.eniID === eniID && offer.assignmentID === assignmentID,
  );
  const address = state === 'Detaching' ? 'Releasing' : 'Assigned';
  const stay = stayOf(
    { ip: ips[0] ?? '', assignmentID: assignmentID ?? '', state: address, ...(claim === undefined ? {} : { claim }) },
    owner,
    isOffered,
  );
  return { stay: registeredOr(nec, ips, stay), isStatic: claim !== undefined };
}

/** Counts as ipamd does: what is not static, on ENIs of the kind that are attached and do not drain. */
function poolOf(
  { spec }: ClusterNec,
  enis: readonly { readonly eni: NodeEniInfo; readonly addresses: readonly Counted[] }[],
  kind: Kind,
): PoolSituation {
  const counted = enis
    .filter(({ eni }) => kindOf(eni) === kind && eni.state === 'Attached' && eni.draining !== true)
    .flatMap(({ addresses }) => addresses.filter(({ isStatic }) => !isStatic));
  const count = (...uses: readonly StayAddress['use'][]) =>
    counted.filter(({ stay }) => uses.includes(stay.use)).length;
  const held = count('in-use', 'registered');
  const numbers = { have: held + count('idle'), offered: count('offered'), used: held };
  if (kind === 'exclusive') return { ...numbers, demand: spec.desiredDirectENI };
  const { desiredRouteENIIP, desiredRouteENIPodNum: minimum } = spec;
  const demand = desiredRouteENIIP === undefined ? undefined : Math.max(desiredRouteENIIP, minimum ?? 0);
  return { ...numbers, demand, minimum };
}

function nodeOf({ spec, status, deletionRequestedMs }: ClusterNec): NodeSituation {
  const isDraining = (status.conditions ?? []).some(({ type, reason }) => type === 'Ready' && reason === 'Draining');
  return {
    isLeaving: isDraining || deletionRequestedMs !== undefined,
    isQuickRelease: spec.enableQuickRelease === true,
    epochs: { supply: status.supplyEpoch ?? 0, observed: spec.observedSupplyEpoch },
    calls: { count: (status.intents ?? []).length, max: INTENTS.maxItems },
  };
}

/** Returns what the cloud refuses, where the condition names the ENI: it tells one refusal of the node. */
function refusalOf({ status }: ClusterNec, eniId: string): string | undefined {
  const refusal = (status.conditions ?? []).find(({ type, status: is }) => type === 'CloudAccepts' && is === 'False');
  return refusal?.message?.includes(eniId) === true ? refusal.message : undefined;
}

function callOf({ action, phase, recordedMs, tries, lastError }: WorkIntent, nowMs: number): RecordedCall {
  return { action, phase, ageMs: Math.max(0, nowMs - recordedMs), tries, lastError };
}
