import { isInCidr } from '../../crd/ip-text.ts';
import type {
  NodeEniAddress,
  NodeEniConfigSpec,
  NodeEniConfigStatus,
  NodeEniInfo,
} from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf, claimMarkOf, withClaimMark } from './claim-marks.ts';
import type { CloudSnapshot, Ids, ObservedEni } from './decision.ts';
import { eniInfoOf, isValidEni, newAssignment } from './observed-eni.ts';
import { detachingEni, isIpv4, isShared, unboundEni, withEnis, withPlace } from './with-enis.ts';

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
  snapshot: CloudSnapshot,
  ids: Ids,
  only?: ReadonlySet<string>,
  reserved?: ReadonlyMap<string, string>,
): NodeEniConfigStatus {
  const epoch = status.supplyEpoch ?? 0;
  const observedEpoch = spec.observedSupplyEpoch ?? 0;
  const isRestore = observedEpoch > epoch;
  const rebuilder = new StatusRebuilder(status, isRestore, snapshot, ids, only, reserved);
  const next = withEnis(status, rebuilder.enis());
  if (!isRestore) return next === status ? status : { ...next, describedAt: ids.now() };
  return {
    ...next,
    supplyEpoch: Math.max(next.supplyEpoch ?? 0, observedEpoch + 1),
    intents: [],
    describedAt: ids.now(),
  };
}

/** Goes through the ENIs of object and cloud. It records used addresses and MACs: each may be in one place only. */
class StatusRebuilder {
  #status: NodeEniConfigStatus;
  #isRestore: boolean;
  #snapshot: CloudSnapshot;
  #ids: Ids;
  #only: ReadonlySet<string> | undefined;
  #reserved: ReadonlyMap<string, string> | undefined;
  #used = new Set<string>();

  constructor(
    status: NodeEniConfigStatus,
    isRestore: boolean,
    snapshot: CloudSnapshot,
    ids: Ids,
    only: ReadonlySet<string> | undefined,
    reserved: ReadonlyMap<string, string> | undefined,
  ) {
    this.#status = status;
    this.#isRestore = isRestore;
    this.#snapshot = snapshot;
    this.#ids = ids;
    this.#only = only;
    this.#reserved = reserved;
  }

  enis(): readonly NodeEniInfo[] {
    const existing = (this.#status.eniInfos ?? []).map((eni) => (this.#isSkipped(eni) ? this.#withoutMoved(eni) : eni));
    for (const eni of existing) if (this.#isSkipped(eni)) this.#markUsed(eni);
    const remaining = existing.flatMap((eni) => {
      if (this.#isSkipped(eni)) return [eni];
      const observed = this.#snapshot.enis.get(eni.eniID);
      if (observed === undefined) return this.#snapshot.isComplete ? [] : [this.#unchanged(eni)];
      return this.#rebuild(observed, eni);
    });
    const known = new Set(existing.map((eni) => eni.eniID));
    const found = [...this.#snapshot.enis.values()]
      .filter(
        (observed) => !known.has(observed.eniID) && !this.#isExpected(observed) && this.#isSelected(observed.eniID),
      )
      .sort((one, other) => (one.eniID < other.eniID ? -1 : 1))
      .flatMap((observed) => this.#rebuild(observed, undefined));
    return [...remaining, ...found];
  }

  #isSelected(eniID: string): boolean {
    return this.#only?.has(eniID) ?? true;
  }

  #isSkipped({ eniID }: NodeEniInfo): boolean {
    if (this.#isRestore) return false;
    const isBusy = this.#status.intents?.some((intent) => intent.eniID === eniID || intent.targetENIID === eniID);
    return isBusy === true || !this.#isSelected(eniID);
  }

  /**
   * Removes addresses that the cloud describes on another ENI and not on this one. If they stayed here, the other ENI
   * would count as empty and would be removed with the Pods that it serves.
   */
  #withoutMoved(eni: NodeEniInfo): NodeEniInfo {
    const observed = this.#snapshot.enis.get(eni.eniID);
    const elsewhere = [...this.#snapshot.enis.values()].filter((other) => other !== observed);
    const isMoved = ({ ip }: NodeEniAddress) =>
      observed?.ips.includes(ip) !== true && elsewhere.some(({ ips }) => ips.includes(ip));
    if (!(eni.addresses ?? []).some(isMoved)) return eni;
    return { ...eni, addresses: (eni.addresses ?? []).filter((address) => !isMoved(address)) };
  }

  /** Reports whether a recorded creation will bring the ENI. */
  #isExpected(observed: ObservedEni): boolean {
    if (this.#isRestore) return false;
    return this.#status.intents?.some((intent) => intent.resourceName === observed.name) ?? false;
  }

  #markUsed(eni: NodeEniInfo): void {
    const addresses = (eni.addresses ?? []).map((address) => address.ip);
    for (const one of [eni.mac, eni.primaryIP, eni.primaryIPv6, ...addresses])
      if (one !== undefined) this.#used.add(one);
  }

  /** Keeps an ENI whose state in the cloud is unknown; after a restore its addresses get new ids. */
  #unchanged(eni: NodeEniInfo): NodeEniInfo {
    const next = this.#isRestore
      ? { ...eni, addresses: (eni.addresses ?? []).map((one) => this.#withNewId(one)) }
      : eni;
    this.#markUsed(next);
    return next;
  }

  #rebuild(observed: ObservedEni, existing: NodeEniInfo | undefined): readonly NodeEniInfo[] {
    const state = this.#stateOf(observed, existing);
    if (state === undefined) return [];
    // An incomplete description proves nothing, and the ENI may serve Pods.
    if (!isValidEni(observed)) return existing === undefined ? [] : [this.#unchanged(existing)];
    if (existing !== undefined && this.#isBeingChanged(observed, existing)) return [this.#unchanged(existing)];
    if (this.#used.has(observed.mac) || this.#used.has(observed.primaryIP)) return [];
    this.#used.add(observed.mac).add(observed.primaryIP);
    const isBound = observed.instanceID !== undefined;
    const fresh = eniInfoOf(observed, state);
    const mode = existing === undefined && observed.mode !== undefined ? { mode: observed.mode } : {};
    const merged: NodeEniInfo =
      existing === undefined ? { ...fresh, ...mode } : { ...existing, ...fresh, ...nameOf(observed, existing) };
    const isNewlyBound = state === 'Attached' && (this.#isRestore || existing?.state !== 'Attached');
    const bound: NodeEniInfo = {
      ...merged,
      ...(isNewlyBound || (state === 'Attached' && merged.assignmentID === undefined)
        ? { assignmentID: this.#ids.next() }
        : {}),
      addresses: isShared(merged) ? this.#addressesOf(observed, existing) : (existing?.addresses ?? []),
    };
    const placed = observed.isExtension === undefined ? bound : withPlace(bound, observed.isExtension);
    const entry = isBound ? placed : unboundEni(placed);
    return [state === 'Detaching' ? detachingEni(entry) : entry];
  }

  /** Reports whether the cloud is changing an attached ENI. It goes on serving; the next description shows the result. */
  #isBeingChanged(observed: ObservedEni, existing: NodeEniInfo): boolean {
    if (this.#isRestore || existing.state !== 'Attached') return false;
    const isHere = observed.instanceID !== undefined && observed.instanceID === this.#status.instanceID;
    return isHere && (observed.state === 'PENDING' || observed.state === 'ATTACHING');
  }

  /** Returns the state of the entry; undefined for an ENI that does not belong to this node. */
  #stateOf(observed: ObservedEni, existing: NodeEniInfo | undefined): NodeEniInfo['state'] | undefined {
    const { instanceID } = this.#status;
    const isElsewhere =
      observed.instanceID !== undefined && instanceID !== undefined && observed.instanceID !== instanceID;
    // A static ENI moves between nodes, and its tags name the first one.
    const isStaticHere = existing?.mode === 'direct-eni' && existing.claim !== undefined;
    if ((observed.isOthers === true && !isStaticHere) || isElsewhere) return undefined;
    // An ENI in the object belongs to the node whatever its tags: people remove tags, and the cloud omits them at
    // times.
    if (observed.isForeign === true && existing === undefined) return undefined;
    if (observed.state === 'DETACHING' || observed.state === 'DELETING') return 'Detaching';
    if (existing?.state === 'Detaching' && !this.#isRestore) return 'Detaching';
    return observed.state === 'AVAILABLE' && observed.instanceID !== undefined ? 'Attached' : 'Attaching';
  }

  #addressesOf(observed: ObservedEni, existing: NodeEniInfo | undefined): readonly NodeEniAddress[] {
    const there = new Set(observed.ips.filter((ip) => isInCidr(ip, observed.subnetCIDR)));
    const pending = new Set(observed.pendingIps);
    // An address that is being changed still exists: the next description shows the result.
    const isPresent = ({ ip }: NodeEniAddress) => !isIpv4(ip) || there.has(ip) || (pending.has(ip) && !this.#isRestore);
    const remaining = (existing?.addresses ?? []).filter(isPresent).filter(({ ip }) => this.#markIfUnused(ip));
    const more = [...there]
      .filter((ip) => this.#markIfUnused(ip))
      .map((ip) => withClaimMark(newAssignment(ip, this.#ids), this.#reserved));
    return [...remaining.map((address) => (this.#isRestore ? this.#withNewId(address) : address)), ...more];
  }

  #withNewId(address: NodeEniAddress): NodeEniAddress {
    const { claim, ...rest } = { ...address, ...newAssignment(address.ip, this.#ids) };
    // An old state does not show which Pod may use a static address.
    if (claim !== undefined) return { ...rest, claim: claimMarkOf(claimKeyOf(claim)) };
    return withClaimMark(rest, this.#reserved);
  }

  #markIfUnused(ip: string): boolean {
    if (this.#used.has(ip)) return false;
    this.#used.add(ip);
    return true;
  }
}

/** Returns the name for the entry: an ENI without a name in the cloud leaves the entry's name unchanged. */
function nameOf(observed: ObservedEni, existing: NodeEniInfo): Pick<NodeEniInfo, 'name'> {
  return observed.name === '' && existing.name !== undefined ? { name: existing.name } : {};
}
