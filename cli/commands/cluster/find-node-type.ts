import { eniLimitsByCores } from '../../../cloud/eni-limits.ts';
import { DEFAULT_MIN_WARM_IPS, type NewNode } from '../../../crd/new-node.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import type { ClusterNec } from './cluster-facts.ts';

/** A new node as its instance type makes it, and where the limits are from. */
export type NodeType = NewNode & {
  /** Instance type; '' where no node of the cluster has one. */
  readonly type: string;
  /**
   * nodes: from a node of this type. name: from the number of cores that the name of the type contains, by the
   * product's table. smallest: no type is known, and the limits are those of the smallest instances.
   */
  readonly source: 'nodes' | 'name' | 'smallest';
};

/**
 * Finds the limits of a new node of an instance type: as the newest node of the type has them, else by the name of the
 * type. Undefined for a type that neither tells of.
 */
export function findNodeType(necs: readonly ClusterNec[], type: string): NodeType | undefined {
  const warmIps = newestOf(necs, ({ spec }) => spec.routeENIIPMinWarmTarget) ?? DEFAULT_MIN_WARM_IPS;
  const limits = newestOf(necs, ({ spec: { maxRouteENI = 0, maxIPPerENI = 0 }, status }) =>
    // Nodes without shared ENIs tell nothing of those.
    status.instanceType === type && maxRouteENI > 0 && maxIPPerENI > 0
      ? { maxEnis: maxRouteENI, ipsPerEni: maxIPPerENI }
      : undefined,
  );
  if (limits !== undefined) return { type, ...limits, warmIps, source: 'nodes' };
  const cores = coresOf(type);
  return cores === undefined ? undefined : { type, ...limitsByCores(cores), warmIps, source: 'name' };
}

/**
 * Finds the limits of a new node where no type is named: of the type that most nodes of the zone have, else of the type
 * that most nodes of the cluster have, else of the smallest instances.
 */
export function findUsualNodeType(necs: readonly ClusterNec[], zone: string): NodeType {
  const inZone = necs.filter(({ status }) => status.zone === zone);
  const type = commonestType(inZone) ?? commonestType(necs) ?? '';
  const warmIps = newestOf(necs, ({ spec }) => spec.routeENIIPMinWarmTarget) ?? DEFAULT_MIN_WARM_IPS;
  return findNodeType(necs, type) ?? { type, ...limitsByCores(1), warmIps, source: 'smallest' };
}

/** Lists the instance types of the nodes, the commonest first. */
export function typesOf(necs: readonly ClusterNec[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { status } of necs) {
    if (status.instanceType !== undefined) counts.set(status.instanceType, (counts.get(status.instanceType) ?? 0) + 1);
  }
  return [...counts].sort(([a, countA], [b, countB]) => countB - countA || compareTexts(a, b)).map(([type]) => type);
}

function commonestType(necs: readonly ClusterNec[]): string | undefined {
  return typesOf(necs)[0];
}

/** Returns what the newest node tells. New nodes are like it: flags of ipamd may have changed since older ones joined. */
function newestOf<T>(necs: readonly ClusterNec[], tell: (nec: ClusterNec) => T | undefined): T | undefined {
  let newest: { readonly createdMs: number; readonly value: T } | undefined;
  for (const nec of necs) {
    const value = tell(nec);
    if (value === undefined || (newest !== undefined && newest.createdMs >= nec.createdMs)) continue;
    newest = { createdMs: nec.createdMs, value };
  }
  return newest?.value;
}

function limitsByCores(cores: number): Pick<NewNode, 'maxEnis' | 'ipsPerEni'> {
  const { secondaryEnis, secondaryIpsPerEni } = eniLimitsByCores(cores);
  return { maxEnis: secondaryEnis, ipsPerEni: secondaryIpsPerEni };
}

const CORES: Readonly<Record<string, number>> = { SMALL: 1, MEDIUM: 2, LARGE: 4 };

/**
 * Reads the number of cores in the name of an instance type: SMALL 1, MEDIUM 2, LARGE 4, nXLARGE 4n, as in S5.2XLARGE16.
 * @see https://cloud.tencent.com/document/product/213/11518
 */
function coresOf(type: string): number | undefined {
  const [, size = '', times] = /^[A-Z][A-Za-z0-9]{0,15}\.((\d{1,2})XLARGE|SMALL|MEDIUM|LARGE)\d{1,4}$/.exec(type) ?? [];
  return times === undefined ? CORES[size] : Number(times) * 4;
}
