import { EMPTY_STATE, type HostState, mergeHostState } from './desired.ts';
import { eniMarkMaskFaults, hex, overlaps } from './eni-mark.ts';
import { canonicalAddress, familyOf, hostPrefix, isAddress, isPrefix } from './ip-prefix.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from './network.ts';
import { isNftName } from './nft-table.ts';
import { FAST_PATH_MARK, MAX_ENI_SLOT, PRIORITY, TABLE_ENI_BASE, TABLE_PODLESS } from './numbers.ts';
import { planBridge } from './plan-bridge.ts';
import { planEni } from './plan-eni.ts';
import { planFastPath } from './plan-fast-path.ts';
import { planHost } from './plan-host.ts';
import { planPod } from './plan-pod.ts';
import { unreachableRoute } from './unreachable-route.ts';

/**
 * Plans the whole node: the one desired state that start, repair and `diff` compare the kernel with.
 * @throws PlanError with every fault of the input at once
 */
export function planNode(node: NodeNetwork, enis: readonly EniNetwork[], pods: readonly PodNetwork[]): HostState {
  const faults = networkFaults(node, enis, pods);
  if (faults.length > 0) throw new PlanError(faults);
  return mergeHostState(
    planHost(node, enis),
    planBridge(node, pods),
    ...enis.map((eni) => planEni(node, eni)),
    ...pods.map((pod) => planPod(node, pod).host),
    // After the Pods: its rule must not come before theirs.
    planPodless(node),
    planFastPath(node, enis, pods),
  );
}

/** Returns every reason why this input has no plan; empty when it has one. */
function networkFaults(node: NodeNetwork, enis: readonly EniNetwork[], pods: readonly PodNetwork[]): readonly string[] {
  const tables = new Set(enis.map((eni) => eni.table));
  return [
    ...eniMarkMaskFaults(node.eniMarkMask),
    ...(isNftName(node.primary.ifname)
      ? []
      : [`primary interface: interface name "${node.primary.ifname}" cannot be written in nftables; rename it`]),
    ...[
      ...node.podCidrs.map(({ cidr }) => cidr),
      ...node.vpcCidrs,
      ...(node.serviceCidrs ?? []),
      ...(node.bridge?.masquerade?.exempt ?? []),
    ]
      .filter((cidr) => !isPrefix(cidr))
      .map((cidr) => `"${cidr}" is no CIDR`),
    ...(node.egressExempt ?? [])
      .filter((ip) => !isAddress(ip))
      .map((ip) => `egress exemption "${ip}" is no IP address`),
    ...(node.assignedIps ?? []).filter((ip) => !isAddress(ip)).map((ip) => `address for Pods "${ip}" is no IP address`),
    ...(node.ruleMode === 'compact' && node.nftables === false
      ? ['rule mode compact needs nftables: install nft, or use --rule-mode=per-pod']
      : []),
    ...(node.bridge?.masquerade !== undefined && node.nftables === false
      ? ['masquerade of GlobalRoute Pods needs nftables: install nft, or turn it off']
      : []),
    ...fastPathFaults(node),
    ...enis.flatMap(eniFaults),
    ...duplicates(enis, (eni) => `table ${eni.table}`),
    ...duplicates(enis, (eni) => `slot ${eni.slot}`),
    ...pods.flatMap((pod) => podFaults(pod, tables)),
    ...addressOwners(pods),
  ];
}

function fastPathFaults({ fastPath, nftables, eniMarkMask }: NodeNetwork): readonly string[] {
  if (fastPath === undefined) return [];
  const mark = hex(FAST_PATH_MARK);
  return [
    ...(nftables === false ? ['the fast path needs nftables: install nft, or use --fast-path=off'] : []),
    ...(fastPath === 'bpf' && overlaps(eniMarkMask, FAST_PATH_MARK)
      ? [`ENI mark mask ${hex(eniMarkMask)}: bit ${mark} is the fast path's; choose others, or use --fast-path=off`]
      : []),
  ];
}

function eniFaults(eni: EniNetwork): readonly string[] {
  return [
    ...(Number.isInteger(eni.slot) && eni.slot >= 1 && eni.slot <= MAX_ENI_SLOT
      ? []
      : [`ENI ${eni.eniId}: slot ${eni.slot} is not in 1..${MAX_ENI_SLOT}`]),
    ...(eni.table > TABLE_ENI_BASE ? [] : [`ENI ${eni.eniId}: table ${eni.table} is not above ${TABLE_ENI_BASE}`]),
    ...eni.addresses
      .flatMap(({ ip, gateway }) => [ip, gateway])
      .concat(eni.podIps ?? [])
      .filter((ip) => !isAddress(ip))
      .map((ip) => `ENI ${eni.eniId}: "${ip}" is no IP address`),
  ];
}

function podFaults(pod: PodNetwork, tables: ReadonlySet<number>): readonly string[] {
  const who = `attachment ${pod.key.containerId}/${pod.key.ifName}`;
  return [
    ...(pod.kind === 'direct-eni' || pod.kind === 'bridge' || tables.has(pod.eniTable)
      ? []
      : [`${who}: no ENI has table ${pod.eniTable}`]),
    ...pod.ips.filter((ip) => !isAddress(ip)).map((ip) => `${who}: "${ip}" is no IP address`),
  ];
}

function addressOwners(pods: readonly PodNetwork[]): readonly string[] {
  const owners = pods.flatMap((pod) => pod.ips.map((ip) => ({ ip, who: `${pod.key.containerId}/${pod.key.ifName}` })));
  return duplicates(
    owners,
    ({ ip }) => `address ${ip}`,
    ({ who }) => who,
  );
}

function duplicates<T extends object>(
  items: readonly T[],
  keyOf: (item: T) => string,
  nameOf: (item: T) => string = (item) => ('eniId' in item ? String(item.eniId) : ''),
): readonly string[] {
  const groups = Map.groupBy(items, keyOf);
  return [...groups].flatMap(([key, group]) =>
    group.length > 1 ? [`${key} is used by ${group.map(nameOf).join(' and ')}`] : [],
  );
}

/**
 * Plans what becomes of packets to addresses of this node that no Pod has: they are refused. The VPC leads such an address
 * here, so one that left the node again, by an ENI or by the primary interface, would come back until its TTL ends.
 *
 * The routes do not depend on Pods: those to Pods are looked up before, by rule 512 or 1024. So an ADD or DEL changes
 * nothing here, and leaves no moment without the one or the other.
 */
function planPodless({ families, assignedIps = [] }: NodeNetwork): HostState {
  return {
    ...EMPTY_STATE,
    routes: assignedIps
      .map(canonicalAddress)
      .filter((ip) => families.includes(familyOf(ip)))
      .map((ip) => unreachableRoute(TABLE_PODLESS, hostPrefix(ip))),
    rules: families.map((family) => ({ family, priority: PRIORITY.podless, table: TABLE_PODLESS })),
  };
}

/** Input from which no correct state can be planned; `faults` names each fault. */
export class PlanError extends Error {
  readonly code = 'INVALID_NETWORK';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`cannot plan the node's network: ${faults.join('; ')}`);
    this.name = 'PlanError';
    this.faults = faults;
  }
}
