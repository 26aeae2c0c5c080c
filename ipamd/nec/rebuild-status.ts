import { isInCidr } from '../../crd/ip-text.ts';
import type {
  NodeEniAddress,
  NodeEniConfigSpec,
  NodeEniConfigStatus,
  NodeEniInfo,
} from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf, claimMarkOf, markedOnArrival } from './claim-marks.ts';
import type { CloudSight, Ids, SeenEni } from './decision.ts';
import { assignedNow, eniInfoOf, isSoundEni } from './seen-eni.ts';
import { detachingEni, isIpv4, isShared, unboundEni, withEnis } from './with-enis.ts';

/**
 * Rebuilds the status from what the cloud holds.
 *
 * After a restore (the agent has seen a later epoch than the object has) nothing in the object is trusted: no intent is
 * kept, every assignment gets a new id, so that no earlier offer counts, and the epoch becomes higher than both.
 * Otherwise entries that agree keep their ids, and ENIs with a call in flight are left unchanged.
 * `only` limits the rebuild to these ENIs. A found address that belongs to a claim (`reserved`) gets its mark. Returns
 * the same status when nothing differs. Takes ids.
 */
export function rebuildStatus(
  status: NodeEniConfigStatus,
  spec: NodeEniConfigSpec,
  sight: CloudSight,
  ids: Ids,
  only?: ReadonlySet<string>,
  reserved?: ReadonlyMap<string, string>,
): NodeEniConfigStatus {
  const epoch = status.supplyEpoch ?? 0;
  const observed = spec.observedSupplyEpoch ?? 0;
  const isRestore = observed > epoch;
  const mender = new Mender(status, isRestore, sight, ids, only, reserved);
  const next = withEnis(status, mender.enis());
  if (!isRestore) return next === status ? status : { ...next, describedAt: ids.now() };
  return { ...next, supplyEpoch: Math.max(next.supplyEpoch ?? 0, observed + 1), intents: [], describedAt: ids.now() };
}

/** Goes through the ENIs of object and cloud. It records used addresses and MACs: each may be in one place only. */
class Mender {
  #status: NodeEniConfigStatus;
  #isRestore: boolean;
  #sight: CloudSight;
  #ids: Ids;
  #only: ReadonlySet<string> | undefined;
  #reserved: ReadonlyMap<string, string> | undefined;
  #taken = new Set<string>();

  constructor(
    status: NodeEniConfigStatus,
    isRestore: boolean,
    sight: CloudSight,
    ids: Ids,
    only: ReadonlySet<string> | undefined,
    reserved: ReadonlyMap<string, string> | undefined,
  ) {
    this.#status = status;
    this.#isRestore = isRestore;
    this.#sight = sight;
    this.#ids = ids;
    this.#only = only;
    this.#reserved = reserved;
  }

  enis(): readonly NodeEniInfo[] {
    const held = (this.#status.eniInfos ?? []).map((eni) => (this.#isLeftAlone(eni) ? this.#withoutMoved(eni) : eni));
    for (const eni of held) if (this.#isLeftAlone(eni)) this.#take(eni);
    const kept = held.flatMap((eni) => {
      if (this.#isLeftAlone(eni)) return [eni];
      const seen = this.#sight.enis.get(eni.eniID);
      if (seen === undefined) return this.#sight.isComplete ? [] : [this.#unseen(eni)];
      return this.#mend(seen, eni);
    });
    const known = new Set(held.map((eni) => eni.eniID));
    const found = [...this.#sight.enis.values()]
      .filter((seen) => !known.has(seen.eniID) && !this.#isExpected(seen) && this.#isMeant(seen.eniID))
      .sort((one, other) => (one.eniID < other.eniID ? -1 : 1))
      .flatMap((seen) => this.#mend(seen, undefined));
    return [...kept, ...found];
  }

  #isMeant(eniID: string): boolean {
    return this.#only?.has(eniID) ?? true;
  }

  #isLeftAlone({ eniID }: NodeEniInfo): boolean {
    if (this.#isRestore) return false;
    const isBusy = this.#status.intents?.some((intent) => intent.eniID === eniID || intent.targetENIID === eniID);
    return isBusy === true || !this.#isMeant(eniID);
  }

  /**
   * Removes addresses that the cloud describes on another ENI and not on this one. If they stayed here, the other ENI
   * would count as empty and would be removed with the Pods that it serves.
   */
  #withoutMoved(eni: NodeEniInfo): NodeEniInfo {
    const seen = this.#sight.enis.get(eni.eniID);
    const elsewhere = [...this.#sight.enis.values()].filter((other) => other !== seen);
    const isMoved = ({ ip }: NodeEniAddress) =>
      seen?.ips.includes(ip) !== true && elsewhere.some(({ ips }) => ips.includes(ip));
    if (!(eni.addresses ?? []).some(isMoved)) return eni;
    return { ...eni, addresses: (eni.addresses ?? []).filter((address) => !isMoved(address)) };
  }

  /** Tells whether a recorded creation will bring the ENI. */
  #isExpected(seen: SeenEni): boolean {
    if (this.#isRestore) return false;
    return this.#status.intents?.some((intent) => intent.resourceName === seen.name) ?? false;
  }

  #take(eni: NodeEniInfo): void {
    const addresses = (eni.addresses ?? []).map((address) => address.ip);
    for (const one of [eni.mac, eni.primaryIP, eni.primaryIPv6, ...addresses])
      if (one !== undefined) this.#taken.add(one);
  }

  /** Keeps an ENI whose state in the cloud is unknown; after a restore its addresses get new ids. */
  #unseen(eni: NodeEniInfo): NodeEniInfo {
    const next = this.#isRestore ? { ...eni, addresses: (eni.addresses ?? []).map((one) => this.#renewed(one)) } : eni;
    this.#take(next);
    return next;
  }

  #mend(seen: SeenEni, held: NodeEniInfo | undefined): readonly NodeEniInfo[] {
    const state = this.#stateOf(seen, held);
    if (state === undefined) return [];
    // An incomplete description proves nothing, and the ENI may serve Pods.
    if (!isSoundEni(seen)) return held === undefined ? [] : [this.#unseen(held)];
    if (held !== undefined && this.#isBeingChanged(seen, held)) return [this.#unseen(held)];
    if (this.#taken.has(seen.mac) || this.#taken.has(seen.primaryIP)) return [];
    this.#taken.add(seen.mac).add(seen.primaryIP);
    const isBound = seen.instanceID !== undefined;
    const fresh = eniInfoOf(seen, state);
    const mode = held === undefined && seen.mode !== undefined ? { mode: seen.mode } : {};
    const merged: NodeEniInfo =
      held === undefined ? { ...fresh, ...mode } : { ...held, ...fresh, ...nameOf(seen, held) };
    const isNewlyBound = state === 'Attached' && (this.#isRestore || held?.state !== 'Attached');
    const bound: NodeEniInfo = {
      ...merged,
      ...(isNewlyBound || (state === 'Attached' && merged.assignmentID === undefined)
        ? { assignmentID: this.#ids.next() }
        : {}),
      addresses: isShared(merged) ? this.#addressesOf(seen, held) : (held?.addresses ?? []),
    };
    const placed = isBound ? bound : unboundEni(bound);
    return [state === 'Detaching' ? detachingEni(placed) : placed];
  }

  /** Tells whether the cloud is changing an attached ENI. It goes on serving; the next description shows the result. */
  #isBeingChanged(seen: SeenEni, held: NodeEniInfo): boolean {
    if (this.#isRestore || held.state !== 'Attached') return false;
    const isHere = seen.instanceID !== undefined && seen.instanceID === this.#status.instanceID;
    return isHere && (seen.state === 'PENDING' || seen.state === 'ATTACHING');
  }

  /** Returns the state of the entry; undefined for an ENI that does not belong to this node. */
  #stateOf(seen: SeenEni, held: NodeEniInfo | undefined): NodeEniInfo['state'] | undefined {
    const { instanceID } = this.#status;
    const isElsewhere = seen.instanceID !== undefined && instanceID !== undefined && seen.instanceID !== instanceID;
    // A static ENI moves between nodes, and its tags name the first one.
    const isKeptHere = held?.mode === 'direct-eni' && held.claim !== undefined;
    if ((seen.isOthers === true && !isKeptHere) || isElsewhere) return undefined;
    // An ENI in the object belongs to the node whatever its tags: people remove tags, and the cloud omits them at
    // times.
    if (seen.isForeign === true && held === undefined) return undefined;
    if (seen.state === 'DETACHING' || seen.state === 'DELETING') return 'Detaching';
    if (held?.state === 'Detaching' && !this.#isRestore) return 'Detaching';
    return seen.state === 'AVAILABLE' && seen.instanceID !== undefined ? 'Attached' : 'Attaching';
  }

  #addressesOf(seen: SeenEni, held: NodeEniInfo | undefined): readonly NodeEniAddress[] {
    const there = new Set(seen.ips.filter((ip) => isInCidr(ip, seen.subnetCIDR)));
    const going = new Set(seen.pendingIps);
    // An address that is being changed still exists: the next description shows the result.
    const isKept = ({ ip }: NodeEniAddress) => !isIpv4(ip) || there.has(ip) || (going.has(ip) && !this.#isRestore);
    const kept = (held?.addresses ?? []).filter(isKept).filter(({ ip }) => this.#claim(ip));
    const more = [...there]
      .filter((ip) => this.#claim(ip))
      .map((ip) => markedOnArrival(assignedNow(ip, this.#ids), this.#reserved));
    return [...kept.map((address) => (this.#isRestore ? this.#renewed(address) : address)), ...more];
  }

  #renewed(address: NodeEniAddress): NodeEniAddress {
    const { claim, ...rest } = { ...address, ...assignedNow(address.ip, this.#ids) };
    // An old state does not show which Pod may use a static address.
    if (claim !== undefined) return { ...rest, claim: claimMarkOf(claimKeyOf(claim)) };
    return markedOnArrival(rest, this.#reserved);
  }

  #claim(ip: string): boolean {
    if (this.#taken.has(ip)) return false;
    this.#taken.add(ip);
    return true;
  }
}

/** Returns the name for the entry: an ENI without a name in the cloud leaves the entry's name unchanged. */
function nameOf(seen: SeenEni, held: NodeEniInfo): Pick<NodeEniInfo, 'name'> {
  return seen.name === '' && held.name !== undefined ? { name: held.name } : {};
}
