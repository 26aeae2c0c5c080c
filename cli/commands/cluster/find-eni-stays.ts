import type { NodeEniAddress, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import { ageText } from '../../agent/duration-text.ts';
import { plural } from '../../output/plural.ts';
import { type Stay, type StayAddress, UNKNOWN_STAY, usesOf } from '../pool/stays.ts';
import type { ClusterNec } from './cluster-facts.ts';
import { workIntentOf } from './decode-objects.ts';

/**
 * Lists for each ENI of a NodeENIConfig why it is not returned, as the object has it: what its addresses and calls show, and
 * what ipamd wrote into the conditions. Why an address without a Pod is not offered, its agent alone says.
 * @param podOf `namespace/name` of the Pod with an address in canonical form; no Pod has any where Pods may not be read
 */
export function findEniStays(
  nec: ClusterNec,
  podOf: ReadonlyMap<string, string>,
  nowMs: number,
): ReadonlyMap<string, readonly Stay[]> {
  return new Map(
    (nec.status.eniInfos ?? []).map((eni) => {
      const isWhole = eni.mode === 'direct-eni';
      const addresses = isWhole ? wholeOf(nec, eni, podOf) : addressesOf(nec, eni, podOf);
      const found = [
        ...usesOf(addresses, isWhole),
        ...(eni.state === 'Attached' ? offersOf(nec, addresses) : [STATES[eni.state]]),
        ...callsOf(nec, eni.eniID, nowMs),
        ...refusalOf(nec, eni.eniID),
        ...drainingOf(nec, eni),
      ];
      return [eni.eniID, found.length === 0 ? [UNKNOWN_STAY] : found];
    }),
  );
}

const STATES = {
  Attaching: { reason: 'attaching', text: 'ipamd attaches it' },
  Detaching: { reason: 'detaching', text: 'ipamd detaches and deletes it' },
} as const;

function addressesOf(nec: ClusterNec, eni: NodeEniInfo, podOf: ReadonlyMap<string, string>): readonly StayAddress[] {
  const offers = new Map((nec.spec.releasableIPs ?? []).map(({ ip, assignmentID }) => [ip, assignmentID]));
  return (eni.addresses ?? []).flatMap((address) => {
    const owner = podOf.get(canonicalAddress(address.ip));
    // An IPv6 address comes and goes with its IPv4 address; it counts only where a Pod has it.
    if (owner === undefined && address.ip.includes(':')) return [];
    const isOffered = address.state === 'Assigned' && offers.get(address.ip) === address.assignmentID;
    return [registeredOr(nec, [canonicalAddress(address.ip)], stayOf(address, owner, isOffered))];
  });
}

/** Returns the one address that stands for an exclusive ENI, none once it is detached as a whole. */
function wholeOf(nec: ClusterNec, eni: NodeEniInfo, podOf: ReadonlyMap<string, string>): readonly StayAddress[] {
  const ips = [eni.primaryIP, eni.primaryIPv6].flatMap((ip) => (ip === undefined ? [] : canonicalAddress(ip)));
  const owner = ips.map((ip) => podOf.get(ip)).find((pod) => pod !== undefined);
  const isOffered = (nec.spec.releasableENIs ?? []).some(
    ({ eniID, assignmentID }) => eniID === eni.eniID && assignmentID === eni.assignmentID,
  );
  if (owner === undefined && eni.state === 'Detaching') return [];
  const { claim } = eni;
  const stay = stayOf({ state: 'Assigned', ...(claim === undefined ? {} : { claim }) }, owner, isOffered);
  return [registeredOr(nec, ips, stay)];
}

function stayOf(
  { state, claim }: Pick<NodeEniAddress, 'state' | 'claim'>,
  owner: string | undefined,
  isOffered: boolean,
): StayAddress {
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

function callsOf({ status }: ClusterNec, eniId: string, nowMs: number): readonly Stay[] {
  return (status.intents ?? [])
    .filter(({ eniID }) => eniID === eniId)
    .map((intent) => {
      const { action, phase, recordedMs, tries, lastError } = workIntentOf(intent);
      const error = lastError === '' ? '' : `, ${lastError}`;
      const age = ageText(nowMs - recordedMs);
      const text = `on record: ${action} ${phase} for ${age}, ${tries === 1 ? '1 try' : `${tries} tries`}${error}`;
      return { reason: 'call', text };
    });
}

/** Returns what the cloud refuses, where the condition names the ENI: it has one refusal of the node. */
function refusalOf({ status }: ClusterNec, eniId: string): readonly Stay[] {
  const refusal = status.conditions?.find(({ type, status: is }) => type === 'CloudAccepts' && is === 'False');
  if (refusal?.message?.includes(eniId) !== true) return [];
  return [{ reason: 'refused', text: `the cloud refuses: ${refusal.message}` }];
}

function drainingOf({ status, deletionRequestedMs }: ClusterNec, { draining }: NodeEniInfo): readonly Stay[] {
  const ready = status.conditions?.find(({ type, reason }) => type === 'Ready' && reason === 'Draining');
  if (ready !== undefined || deletionRequestedMs !== undefined) {
    const text = ready?.message ?? 'all ENIs of this node are being released';
    return [{ reason: 'node-draining', text }];
  }
  return draining === true ? [{ reason: 'draining', text: 'it drains: it is returned once no Pod uses it' }] : [];
}

/** Says what the agent has to do before ipamd takes anything. */
function offersOf({ spec, status }: ClusterNec, addresses: readonly StayAddress[]): readonly Stay[] {
  const countOf = (use: StayAddress['use']) => addresses.filter((one) => one.use === use).length;
  const [idle, offered] = [countOf('idle'), countOf('offered')];
  const { supplyEpoch = 0 } = status;
  const { observedSupplyEpoch: seen } = spec;
  const epochs = `supply epoch ${supplyEpoch}, seen by the agent: ${seen ?? 'none'}`;
  if ((seen ?? 0) < supplyEpoch && offered > 0) {
    return [{ reason: 'offer-unconfirmed', text: `the agent has to confirm its offers by its next write: ${epochs}` }];
  }
  if ((seen ?? 0) < supplyEpoch && idle > 0) {
    return [{ reason: 'agent-behind', text: `the agent has not acted on the supply yet: ${epochs}` }];
  }
  if (idle === 0) return [];
  const what = `${plural(idle, 'address')} without a Pod ${idle === 1 ? 'is' : 'are'} not offered`;
  return [{ reason: 'not-offered', text: `${what}: the agent says why, \`tke-eni enis\` on the node` }];
}
