/** One disagreement between what is written about kept addresses and what there is. */
export type ClaimDifference = {
  readonly kind:
    | 'pod-without-claim'
    | 'claim-without-vip'
    | 'vip-without-claim'
    | 'vip-of-vanished-node'
    | 'mark-without-claim'
    | 'vip-unreadable'
    | 'config-unreadable';
  /** The claim's; '' where it is about none. */
  readonly key: string;
  /** What it is told of; absent: the claim. */
  readonly object?: {
    readonly kind: 'VpcIP' | 'StaticIPConfig';
    readonly namespace?: string;
    readonly name: string;
  };
  readonly message: string;
};

/** What an audit compares. */
export type AuditedCluster = {
  /** Keys of Pods that ask for an address that is kept, on nodes or not. */
  readonly pods: Iterable<string>;
  readonly claims: Iterable<{ readonly key: string; readonly vpcIps: readonly string[]; readonly isEnding: boolean }>;
  readonly vips: Iterable<{
    readonly name: string;
    readonly key: string;
    readonly nodeName: string | undefined;
    readonly eniId: string | undefined;
  }>;
  /** Marks on ENIs: whose, and where. */
  readonly marks: Iterable<{ readonly key: string; readonly nodeName: string }>;
  /** The ENIs of a node; undefined when it has no NodeENIConfig. */
  readonly enisOf: (nodeName: string) => ReadonlySet<string> | undefined;
};

/** Finds what does not agree. All of it is mended by a look at the claim, which frees nothing without asking. Pure. */
export function findDifferences(cluster: AuditedCluster): readonly ClaimDifference[] {
  const claims = new Map([...cluster.claims].map((one) => [one.key, one] as const));
  const vips = [...cluster.vips];
  const names = new Set(vips.map(({ name }) => name));
  const difference = (kind: ClaimDifference['kind'], key: string, message: string): ClaimDifference => ({
    kind,
    key,
    message,
  });
  return [
    ...[...cluster.pods]
      .filter((key) => !claims.has(key))
      .map((key) => difference('pod-without-claim', key, 'the Pod asks for a kept address and has no claim')),
    ...[...claims.values()]
      .filter(({ isEnding }) => !isEnding)
      .flatMap(({ key, vpcIps }) => {
        const missing = vpcIps.filter((name) => !names.has(name));
        return missing.length === 0
          ? []
          : [difference('claim-without-vip', key, `there is no VpcIP ${missing.join(', ')}, which it names`)];
      }),
    ...vips
      .filter(({ key }) => !claims.has(key))
      .map(({ key, name }) => difference('vip-without-claim', key, `VpcIP ${name} names a claim that is not there`)),
    ...vips.flatMap(({ key, name, nodeName, eniId }) => {
      if (nodeName === undefined || eniId === undefined) return [];
      if (cluster.enisOf(nodeName)?.has(eniId) === true) return [];
      const where = `${eniId} of node ${nodeName}`;
      return [difference('vip-of-vanished-node', key, `VpcIP ${name} is on ${where}, which is not there`)];
    }),
    ...[...cluster.marks]
      .filter(({ key }) => !claims.has(key))
      .map(({ key, nodeName }) =>
        difference('mark-without-claim', key, `node ${nodeName} has an address for it, and there is no claim`),
      ),
  ];
}
