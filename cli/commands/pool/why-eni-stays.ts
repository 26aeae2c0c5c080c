import { ageText } from '../../agent/duration-text.ts';
import { plural } from '../../output/plural.ts';

/** Why an ENI is not returned to the cloud: a code for programs, and one sentence for people. */
export type Stay = { readonly reason: StayReason; readonly text: string };

/** Code of a reason; docs/cli.md explains each. */
type StayReason =
  | 'in-use'
  | 'cooling'
  | 'registered'
  | 'static'
  | 'not-attached'
  | 'attaching'
  | 'detaching'
  | 'releasing'
  | 'call'
  | 'instance-busy'
  | 'intents-full'
  | 'refused'
  | 'node-draining'
  | 'draining'
  | 'agent-silent'
  | 'agent-behind'
  | 'supply-file'
  | 'uplinks'
  | 'supply-problem'
  | 'waiting-adds'
  | 'warm'
  | 'minimum'
  | 'demand'
  | 'pace'
  | 'offer-unconfirmed'
  | 'offered'
  | 'unlisted'
  | 'unknown';

/**
 * State of an ENI as one source shows it: the agent, its journal, or the NodeENIConfig with the Pods. What a source
 * cannot show is absent, and no reason is derived from it.
 */
export type EniSituation = {
  readonly kind: 'shared' | 'exclusive';
  /** not-attached: the source shows no more than that. */
  readonly state: 'attached' | 'attaching' | 'detaching' | 'not-attached';
  readonly isDraining: boolean;
  /** Addresses for Pods. An exclusive ENI counts as one address. */
  readonly addresses: readonly StayAddress[];
  /** Addresses or exclusive ENIs of the node's pool. */
  readonly pool: PoolSituation;
  readonly node: NodeSituation;
  /** Calls that are on record for the ENI. */
  readonly calls?: readonly RecordedCall[];
  /** The cloud's refusal of a call for the ENI. */
  readonly refusal?: string | undefined;
};

/** One address of an ENI. idle: no Pod is known to use it, and the agent does not offer it. */
export type StayAddress = {
  readonly use: 'in-use' | 'cooling' | 'registered' | 'static' | 'idle' | 'offered' | 'releasing';
  /** The Pod that uses it, or the name that it is static for. */
  readonly owner?: string;
  readonly coolRemainingMs?: number;
};

/** Number of addresses or exclusive ENIs of a node that are not static, on ENIs that serve. */
export type PoolSituation = {
  /** Those that the agent does not offer. */
  readonly have: number;
  readonly offered: number;
  /** Those in use, with registered ones, and cooling ones where the source shows them. */
  readonly used: number;
  /** Number that the node asks for. */
  readonly demand?: number | undefined;
  readonly warm?: { readonly min: number; readonly max: number };
  /** Number that stays at least, from the Node annotation desired-route-eni-pod-num. */
  readonly minimum?: number | undefined;
};

/** What holds for every ENI of a node. */
export type NodeSituation = {
  /** Why no agent answers. */
  readonly whyNoAgent?: string;
  readonly isSupplyFile?: boolean;
  /** Problem of the supply, as the agent reports it; empty when there is none. */
  readonly supplyProblem?: string;
  /** ADDs that wait for an address. */
  readonly waitingAdds?: readonly string[];
  /** True when all surplus is offered at a time. */
  readonly isQuickRelease?: boolean;
  /** Supply epoch of the object, and the one that the agent has acted upon. */
  readonly epochs?: { readonly supply: number; readonly observed: number | undefined };
  /** True when ipamd returns all ENIs of the node. */
  readonly isLeaving?: boolean;
  /** Number of calls that are on record for the node, and how many it may have. */
  readonly calls?: { readonly count: number; readonly max: number };
  /** A creation, attachment or detachment of another ENI of the instance. */
  readonly instanceCall?: RecordedCall | undefined;
};

/** A cloud call that is on record. */
export type RecordedCall = {
  readonly action: string;
  readonly phase: string;
  readonly ageMs: number;
  readonly tries: number;
  /** Empty when no try failed. */
  readonly lastError: string;
};

/**
 * Lists why an ENI is not returned to the cloud: first what uses it, then what ipamd does about it, then what the agent
 * waits for. Never empty. A reason that the source cannot show is left out, such as an ipamd without a leader.
 */
export function whyEniStays(eni: EniSituation): readonly Stay[] {
  const found = RULES.flatMap((rule) => rule(eni) ?? []);
  return found.length === 0 ? [UNKNOWN] : found;
}

const UNKNOWN: Stay = {
  reason: 'unknown',
  text: 'nothing that shows here: look whether ipamd has a leader, and whether its calls are throttled or refused',
};

type Rule = (eni: EniSituation) => Stay | undefined;

/** In the order in which reasons are shown. */
const RULES: readonly Rule[] = [
  inUse,
  cooling,
  registered,
  reserved,
  unattached,
  releasing,
  otherCall,
  instanceBusy,
  intentsFull,
  refused,
  draining,
  agentSilent,
  agentBehind,
  supplyFile,
  supplyProblem,
  waitingAdds,
  warm,
  minimum,
  demanded,
  pace,
  unconfirmed,
  offered,
];

function inUse({ kind, addresses }: EniSituation): Stay | undefined {
  const owners = ownersOf(addresses, 'in-use');
  if (owners.length === 0) return undefined;
  if (kind === 'exclusive') return { reason: 'in-use', text: `the Pod ${owners.join(', ')} has it` };
  const verb = owners.length === 1 ? '1 Pod uses' : `${owners.length} Pods use`;
  return { reason: 'in-use', text: `${verb} its addresses: ${namesText(owners)}` };
}

function cooling({ addresses }: EniSituation): Stay | undefined {
  const cool = addresses.filter(({ use }) => use === 'cooling');
  if (cool.length === 0) return undefined;
  const lastMs = Math.max(0, ...cool.map(({ coolRemainingMs = 0 }) => coolRemainingMs));
  const verb = cool.length === 1 ? 'cools' : 'cool';
  return { reason: 'cooling', text: `${plural(cool.length, 'address')} ${verb} down, for ${ageText(lastMs)} more` };
}

function registered({ kind, addresses }: EniSituation): Stay | undefined {
  const count = countOf(addresses, 'registered');
  if (count === 0) return undefined;
  const what = kind === 'exclusive' ? 'its address' : plural(count, 'address');
  const verb = kind === 'exclusive' || count === 1 ? 'is' : 'are';
  return {
    reason: 'registered',
    text: `${what} without a Pod ${verb} still published as ${verb === 'is' ? 'a target' : 'targets'} of load balancers: tke-cloud-controller-manager has to deregister ${verb === 'is' ? 'it' : 'them'}`,
  };
}

function reserved({ kind, addresses }: EniSituation): Stay | undefined {
  const fixed = addresses.filter(({ use }) => use === 'static');
  if (fixed.length === 0) return undefined;
  const owners = namesText(ownersOf(addresses, 'static'));
  if (kind === 'exclusive') return { reason: 'static', text: `it is static for ${owners}` };
  return { reason: 'static', text: `${plural(fixed.length, 'static address')} for ${owners}` };
}

function unattached({ state, calls }: EniSituation): Stay | undefined {
  switch (state) {
    case 'attaching':
      return { reason: state, text: `ipamd attaches it${callText(calls, ATTACH)}` };
    case 'detaching':
      return { reason: state, text: `ipamd detaches and deletes it${callText(calls, DETACH)}` };
    case 'not-attached':
      return { reason: state, text: 'it is not attached: ipamd attaches or detaches it' };
    default:
      return undefined;
  }
}

const ATTACH = ['CreateNetworkInterface', 'AttachNetworkInterface'];
const DETACH = ['DetachNetworkInterface', 'DeleteNetworkInterface'];
const RELEASE = ['UnassignPrivateIpAddresses', 'UnassignIpv6Addresses'];

function releasing({ state, addresses, calls }: EniSituation): Stay | undefined {
  const count = countOf(addresses, 'releasing');
  // The addresses of an ENI that is detached go with it.
  if (count === 0 || state === 'detaching') return undefined;
  return { reason: 'releasing', text: `ipamd unassigns ${plural(count, 'address')}${callText(calls, RELEASE)}` };
}

function otherCall({ state, addresses, calls = [] }: EniSituation): Stay | undefined {
  const isShown = ({ action }: RecordedCall) =>
    (state === 'attaching' && ATTACH.includes(action)) ||
    (state === 'detaching' && DETACH.includes(action)) ||
    (countOf(addresses, 'releasing') > 0 && RELEASE.includes(action));
  const other = calls.find((call) => !isShown(call));
  return other === undefined ? undefined : { reason: 'call', text: `a call for it is on record: ${describe(other)}` };
}

function instanceBusy(eni: EniSituation): Stay | undefined {
  const { instanceCall } = eni.node;
  if (instanceCall === undefined || (eni.state !== 'detaching' && !isVacant(eni))) return undefined;
  return {
    reason: 'instance-busy',
    text: `the instance changes one ENI at a time, and has a call on record: ${describe(instanceCall)}`,
  };
}

function intentsFull({ addresses, node: { calls } }: EniSituation): Stay | undefined {
  if (calls === undefined || calls.count < calls.max || countOf(addresses, 'offered') === 0) return undefined;
  return { reason: 'intents-full', text: `the node has ${calls.count} calls on record, and ipamd starts no more` };
}

function refused({ refusal }: EniSituation): Stay | undefined {
  return refusal === undefined ? undefined : { reason: 'refused', text: `the cloud refuses: ${refusal}` };
}

function draining({ isDraining, node }: EniSituation): Stay | undefined {
  if (node.isLeaving === true) {
    return { reason: 'node-draining', text: 'all ENIs of the node are returned, each once no Pod uses it' };
  }
  return isDraining ? { reason: 'draining', text: 'it drains: it is returned once no Pod uses it' } : undefined;
}

function agentSilent({ node: { whyNoAgent } }: EniSituation): Stay | undefined {
  if (whyNoAgent === undefined) return undefined;
  return { reason: 'agent-silent', text: `no agent answers, so that nothing more is offered: ${whyNoAgent}` };
}

function agentBehind({ addresses, node: { epochs }, pool }: EniSituation): Stay | undefined {
  if (epochs === undefined || countOf(addresses, 'offered') > 0 || countOf(addresses, 'idle') === 0) return undefined;
  if (pool.demand === undefined) return { reason: 'agent-behind', text: 'the agent has not written its demand yet' };
  if (!isBehind(epochs)) return undefined;
  return { reason: 'agent-behind', text: `the agent has not acted on the supply yet: ${epochsText(epochs)}` };
}

function supplyFile({ addresses, node }: EniSituation): Stay | undefined {
  if (node.isSupplyFile !== true || isBusy(addresses)) return undefined;
  return { reason: 'supply-file', text: 'supply comes from a file: the agent offers nothing' };
}

function supplyProblem({ addresses, node: { epochs, supplyProblem = '' } }: EniSituation): Stay | undefined {
  if (epochs !== undefined && epochs.supply < (epochs.observed ?? 0)) {
    const text = `an older object was restored, so that ipamd describes the cloud first: ${epochsText(epochs)}`;
    return { reason: 'supply-problem', text };
  }
  if (supplyProblem === '' || countOf(addresses, 'idle') === 0) return undefined;
  return { reason: 'supply-problem', text: `the agent reports of its supply: ${supplyProblem}` };
}

function waitingAdds(eni: EniSituation): Stay | undefined {
  const waiting = eni.node.waitingAdds ?? [];
  if (waiting.length === 0 || isBusy(eni.addresses) || !isPooled(eni)) return undefined;
  const verb = waiting.length === 1 ? '1 ADD waits' : `${waiting.length} ADDs wait`;
  return { reason: 'waiting-adds', text: `${verb} for an address: ${namesText(waiting)}` };
}

function warm(eni: EniSituation): Stay | undefined {
  const { warm: target, demand = 0, used } = eni.pool;
  if (target === undefined || target.max === 0 || demand <= used || !isWanted(eni)) return undefined;
  const range = target.min === target.max ? `${target.min}` : `${target.min} to ${target.max}`;
  return { reason: 'warm', text: `the node keeps ${range} spare (warm target)` };
}

function minimum(eni: EniSituation): Stay | undefined {
  const { minimum: least = 0, used } = eni.pool;
  if (least <= used || !isWanted(eni)) return undefined;
  return {
    reason: 'minimum',
    text: `desired-route-eni-pod-num keeps at least ${plural(least, 'address')} on the node`,
  };
}

function demanded(eni: EniSituation): Stay | undefined {
  const { demand, used, have, warm: target } = eni.pool;
  if (demand === undefined || !isWanted(eni)) return undefined;
  if (target === undefined) {
    const text = `the node asks for ${plural(demand, NOUNS[eni.kind])}, and has ${have} that are not offered`;
    return { reason: 'demand', text };
  }
  const more = demand - used - target.max;
  if (more <= 0) return undefined;
  const text = `the node asks for ${more} above its warm target: for Pods that wait, or by desired-route-eni-pod-num`;
  return { reason: 'demand', text };
}

function pace(eni: EniSituation): Stay | undefined {
  const surplus = surplusOf(eni);
  const { isQuickRelease, epochs } = eni.node;
  const isHeld = epochs !== undefined && epochs.observed !== epochs.supply;
  if (surplus <= 0 || isHeld || !isPooled(eni) || countOf(eni.addresses, 'idle') === 0) return undefined;
  const rate = eni.kind === 'exclusive' ? 'one' : isQuickRelease === true ? 'all' : 'one, from the emptiest ENI first,';
  const text = `the node has ${surplus} more than it asks for: the agent offers ${rate} every 2 minutes by default`;
  return { reason: 'pace', text };
}

function unconfirmed({ kind, addresses, node: { epochs } }: EniSituation): Stay | undefined {
  const count = countOf(addresses, 'offered');
  if (epochs === undefined || count === 0 || !isBehind(epochs)) return undefined;
  const what = kind === 'exclusive' ? 'it is' : `${plural(count, 'address')} ${count === 1 ? 'is' : 'are'}`;
  return {
    reason: 'offer-unconfirmed',
    text: `${what} offered, and the agent has to confirm it by its next write: ${epochsText(epochs)}`,
  };
}

function offered(eni: EniSituation): Stay | undefined {
  const count = countOf(eni.addresses, 'offered');
  const { epochs } = eni.node;
  if (count === 0 || (epochs !== undefined && isBehind(epochs)) || isTakenBack(eni)) return undefined;
  const what =
    eni.kind === 'exclusive' ? 'it is offered' : `${plural(count, 'address')} ${count === 1 ? 'is' : 'are'} offered`;
  return { reason: 'offered', text: `${what}, and ipamd has not taken ${count === 1 ? 'it' : 'them'} yet` };
}

/** Reports whether the pool decides about the ENI: it serves, and the agent can write. */
function isPooled({ state, isDraining, node }: EniSituation): boolean {
  return state === 'attached' && !isDraining && node.isLeaving !== true && node.isSupplyFile !== true;
}

/** Reports whether the node's demand holds the ENI: an idle address that is no surplus, an offer that is taken back. */
function isWanted(eni: EniSituation): boolean {
  const { demand, have, offered: offers } = eni.pool;
  if (demand === undefined || !isPooled(eni)) return false;
  if (eni.addresses.length === 0) return have + offers < demand;
  return countOf(eni.addresses, 'idle') > Math.max(0, surplusOf(eni)) || isTakenBack(eni);
}

/** Reports whether the node needs again what it has offered. */
function isTakenBack(eni: EniSituation): boolean {
  const { demand, have, offered: offers } = eni.pool;
  return isPooled(eni) && countOf(eni.addresses, 'offered') > 0 && demand !== undefined && have + offers <= demand;
}

function surplusOf({ pool: { demand, have } }: EniSituation): number {
  return demand === undefined ? 0 : have - demand;
}

/** Reports whether every address of the ENI is offered or being unassigned. */
function isVacant({ addresses }: EniSituation): boolean {
  return addresses.every(({ use }) => use === 'offered' || use === 'releasing');
}

/** Reports whether the ENI has addresses and Pods use all of them. */
function isBusy(addresses: readonly StayAddress[]): boolean {
  return addresses.length > 0 && addresses.every(({ use }) => use === 'in-use');
}

function isBehind({ supply, observed = 0 }: NonNullable<NodeSituation['epochs']>): boolean {
  return observed < supply;
}

function epochsText({ supply, observed }: NonNullable<NodeSituation['epochs']>): string {
  return `supply epoch ${supply}, seen by the agent: ${observed ?? 'none'}`;
}

function callText(calls: readonly RecordedCall[] | undefined, actions: readonly string[]): string {
  if (calls === undefined) return '';
  const call = calls.find(({ action }) => actions.includes(action));
  return call === undefined ? '; no call is on record yet' : `: ${describe(call)}`;
}

function describe({ action, phase, ageMs, tries, lastError }: RecordedCall): string {
  const error = lastError === '' ? '' : `, ${lastError}`;
  return `${action} ${phase} for ${ageText(ageMs)}, ${tries === 1 ? '1 try' : `${tries} tries`}${error}`;
}

const NOUNS = { shared: 'address', exclusive: 'exclusive ENI' } as const;

function countOf(addresses: readonly StayAddress[], wanted: StayAddress['use']): number {
  return addresses.filter(({ use }) => use === wanted).length;
}

function ownersOf(addresses: readonly StayAddress[], wanted: StayAddress['use']): readonly string[] {
  const owners = addresses.filter(({ use }) => use === wanted).map(({ owner = 'a Pod without a name' }) => owner);
  return [...new Set(owners)];
}

const SHOWN_NAMES = 3;

function namesText(names: readonly string[]): string {
  const more = names.length - SHOWN_NAMES;
  return `${names.slice(0, SHOWN_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
