import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { isStaticPod } from '../../../crd/pod-network-request.ts';
import { vpcIpName } from '../../../crd/vpc-ip.ts';
import { type PodFacts, podKeyOf } from '../../cache/pod-facts.ts';
import type { ClaimFacts, VipFacts } from '../../cache/record-facts.ts';

/** Everything that the records of one node's Pods depend on. */
export type RecordsView = {
  /** Live Pods of the node. */
  readonly pods: readonly PodFacts[];
  /** Whether a Pod has a claim besides the records of its addresses. */
  readonly hasClaims: boolean;
  /** Of its NodeENIConfig; undefined when there is none or it is unreadable. */
  readonly status: NodeEniConfigStatus | undefined;
  /** VpcIPs and VpcIPClaims that name the node. */
  readonly vips: readonly VipFacts[];
  readonly claims: readonly ClaimFacts[];
  /** Look up any live Pod, VpcIP and VpcIPClaim, of every node. */
  readonly podOf: (key: string) => PodFacts | undefined;
  readonly vipOf: (name: string) => VipFacts | undefined;
  readonly claimOf: (key: string) => ClaimFacts | undefined;
  /**
   * Keys of Pods that have been `waiting` for so long that the garbage collector will not delete their claims, and no
   * status of the node under way will show their addresses.
   */
  readonly lingering: ReadonlySet<string>;
};

/** An address of a Pod, and its location. */
export type RecordedIp = {
  readonly ip: string;
  readonly eniId: string;
  readonly subnetId: string | undefined;
  readonly assignmentId: string | undefined;
};

/** A Pod and its addresses, to be recorded. */
export type PodRecord = {
  readonly pod: PodFacts;
  readonly mode: 'route-eni' | 'direct-eni';
  /** At least one. */
  readonly ips: readonly RecordedIp[];
};

/** One write. The writes of a Pod are in order: the claim, then the addresses that are bound to it. */
export type RecordWrite =
  | { readonly kind: 'create-claim'; readonly record: PodRecord }
  | { readonly kind: 'update-claim'; readonly record: PodRecord; readonly claim: ClaimFacts }
  | { readonly kind: 'delete-claim'; readonly claim: ClaimFacts }
  | { readonly kind: 'create-vip'; readonly record: PodRecord; readonly ip: RecordedIp }
  | { readonly kind: 'update-vip'; readonly record: PodRecord; readonly ip: RecordedIp; readonly vip: VipFacts }
  | { readonly kind: 'delete-vip'; readonly vip: VipFacts };

/** The writes, and the keys of Pods whose records are to be deleted if nothing else ends that. */
type RecordsDecision = { readonly writes: readonly RecordWrite[]; readonly waiting: readonly string[] };

/**
 * Compares the records of a node's Pods with the Pods: its addresses, and where `hasClaims` a claim, for each Pod that has an
 * address of the node's ENIs, none for others. A Pod costs two writes: its address, and the deletion of that; a claim is a third,
 * and is deleted with its owner. Objects without the label of a record are ignored.
 */
export function decideRecords(view: RecordsView): RecordsDecision {
  const locations = locationsOf(view.status);
  const records = view.pods.flatMap((pod) => recordOf(pod, locations) ?? []);
  const inUse = new Set(records.flatMap((record) => record.ips.map(({ ip }) => vpcIpName(ip))));
  const unused = view.vips.filter((vip) => vip.isRecord && !inUse.has(vip.name));
  const adrift = unused.filter((vip) => isAdrift(vip.podKey, view));
  const stale = unused.filter((vip) => isStale(vip, view) || (adrift.includes(vip) && view.lingering.has(vip.podKey)));
  const abandoned = view.claims.filter(
    ({ isRecord, key, podUid }) => isRecord && (view.podOf(key)?.uid !== podUid || isAdrift(key, view)),
  );
  const recorded = new Set(records.map(({ pod }) => podKeyOf(pod)));
  // A Pod that failed is not deleted, so neither is its claim: another Pod may have the address meanwhile.
  const isOver = ({ key, ips }: ClaimFacts): boolean =>
    view.lingering.has(key) || ips.some((ip) => inUse.has(vpcIpName(ip)));
  const waiting = abandoned.map((claim) => claim.key).filter((key) => !recorded.has(key));
  const drifting = adrift.filter((vip) => !stale.includes(vip)).map(({ podKey }) => podKey);
  return {
    writes: [
      ...stale.filter(({ isLeaving }) => !isLeaving).map((vip): RecordWrite => ({ kind: 'delete-vip', vip })),
      ...abandoned
        .filter((claim) => !recorded.has(claim.key) && !claim.isLeaving && isOver(claim))
        .map((claim): RecordWrite => ({ kind: 'delete-claim', claim })),
      ...records.flatMap((record) => writesOf(record, view)),
    ],
    waiting: [...new Set([...waiting, ...drifting])],
  };
}

type IpLocation = Omit<RecordedIp, 'ip'> & { readonly mode: PodRecord['mode'] };

/** Returns the location of each Pod address of the node. */
function locationsOf(status: NodeEniConfigStatus | undefined): ReadonlyMap<string, IpLocation> {
  const locations = new Map<string, IpLocation>();
  for (const eni of status?.eniInfos ?? []) {
    const mode = eni.mode ?? 'route-eni';
    const location = { eniId: eni.eniID, subnetId: eni.subnetID, mode };
    if (mode === 'direct-eni') {
      const primaryIps = [eni.primaryIP, eni.primaryIPv6].filter((ip) => ip !== undefined);
      for (const ip of primaryIps) locations.set(vpcIpName(ip), { ...location, assignmentId: eni.assignmentID });
    }
    for (const { ip, pairedIP, assignmentID } of eni.addresses ?? []) {
      locations.set(vpcIpName(ip), { ...location, assignmentId: assignmentID });
      if (pairedIP !== undefined) locations.set(vpcIpName(pairedIP), { ...location, assignmentId: assignmentID });
    }
  }
  return locations;
}

function recordOf(pod: PodFacts, locations: ReadonlyMap<string, IpLocation>): PodRecord | undefined {
  // Static Pods have claims and VpcIPs of their own, which outlive them.
  if (isStaticPod(pod.annotations)) return undefined;
  const found = pod.ips.flatMap((ip) => {
    const location = locations.get(vpcIpName(ip));
    return location === undefined ? [] : [{ ip, ...location }];
  });
  const [first] = found;
  if (first === undefined) return undefined;
  return { pod, mode: first.mode, ips: found.map(({ mode: _, ...ip }) => ip) };
}

/**
 * Reports whether a record is stale: its Pod is deleted, or has another address. A Pod whose sandbox is being recreated
 * has no address for a moment; its record stays.
 */
function isStale(vip: VipFacts, view: RecordsView): boolean {
  const pod = view.podOf(vip.podKey);
  if (pod === undefined || pod.uid !== vip.podUid) return true;
  return pod.ips.length > 0 && !pod.ips.some((ip) => vpcIpName(ip) === vip.name);
}

/** Reports whether a Pod has an address while the node's ENIs are known: one that is on none of them is not the node's. */
function isAdrift(podKey: string, { podOf, status }: RecordsView): boolean {
  return status !== undefined && (podOf(podKey)?.ips.length ?? 0) > 0;
}

function writesOf(record: PodRecord, view: RecordsView): readonly RecordWrite[] {
  // Nothing is recorded for an address that is being released; its namespace may refuse new objects.
  if (record.pod.isLeaving) return [];
  const claim = view.claimOf(podKeyOf(record.pod));
  // The claim is of a person or a static Pod: then the addresses are not recorded either.
  if (claim !== undefined && !claim.isRecord) return [];
  return [...claimWrites(record, claim, view), ...record.ips.flatMap((ip) => vipWrites(record, ip, view))];
}

function claimWrites(
  record: PodRecord,
  claim: ClaimFacts | undefined,
  { hasClaims }: RecordsView,
): readonly RecordWrite[] {
  if (claim === undefined) return hasClaims ? [{ kind: 'create-claim', record }] : [];
  const { pod, ips } = record;
  const isSame =
    claim.podUid === pod.uid &&
    claim.nodeName === pod.nodeName &&
    claim.eniId === ips[0]?.eniId &&
    claim.ips.length === ips.length &&
    claim.ips.every((ip, index) => vpcIpName(ip) === vpcIpName(ips[index]?.ip ?? ''));
  if (isSame) return [];
  if (hasClaims) return [{ kind: 'update-claim', record, claim }];
  // Of the time in which Pods had claims: one that is true goes with its Pod.
  return claim.isLeaving ? [] : [{ kind: 'delete-claim', claim }];
}

function vipWrites(record: PodRecord, ip: RecordedIp, view: RecordsView): readonly RecordWrite[] {
  const vip = view.vipOf(vpcIpName(ip.ip));
  if (vip === undefined) return [{ kind: 'create-vip', record, ip }];
  if (!vip.isRecord) return [];
  const { pod } = record;
  const isSame =
    vip.podKey === podKeyOf(pod) &&
    vip.podUid === pod.uid &&
    vip.nodeName === pod.nodeName &&
    vip.eniId === ip.eniId &&
    vip.assignmentId === (ip.assignmentId ?? '');
  return isSame ? [] : [{ kind: 'update-vip', record, ip, vip }];
}
