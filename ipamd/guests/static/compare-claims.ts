import { readClaimExpiry } from '../../../crd/pod-network-request.ts';
import type { StaticIpRule } from '../../../crd/select-static-ip-config.ts';
import { type Fault, Faults, renderFault } from '../../../runtime/decode.ts';
import { refOfKey } from '../../cache/pod-facts.ts';
import type { StaticObject, VipFacts } from '../../cache/record-facts.ts';

/** One difference between the objects of static addresses and the actual state. */
export type ClaimDifference = {
  readonly kind:
    | 'pod-without-claim'
    | 'claim-without-vip'
    | 'vip-without-claim'
    | 'vip-of-vanished-node'
    | 'mark-without-claim'
    | 'vip-unreadable'
    | 'config-unreadable';
  /** Of the claim; '' for a difference that concerns none. */
  readonly key: string;
  /** The object that the event is recorded on; absent: the claim. */
  readonly object?: {
    readonly kind: 'VpcIP' | 'StaticIPConfig';
    readonly namespace?: string;
    readonly name: string;
  };
  readonly message: string;
};

/** What an audit compares. */
export type AuditedCluster = {
  /** Keys of Pods that request a static address, scheduled or not. */
  readonly pods: Iterable<string>;
  readonly claims: Iterable<{ readonly key: string; readonly vpcIps: readonly string[]; readonly isEnding: boolean }>;
  readonly vips: Iterable<{
    readonly name: string;
    readonly key: string;
    readonly nodeName: string | undefined;
    readonly eniId: string | undefined;
  }>;
  /** Claim marks on ENIs: key of the claim, and node. */
  readonly marks: Iterable<{ readonly key: string; readonly nodeName: string }>;
  /** Returns the ENIs of a node; undefined when it has no NodeENIConfig. */
  readonly enisOf: (nodeName: string) => ReadonlySet<string> | undefined;
};

/** Finds the differences. A reconcile of the claim repairs all of them, and releases nothing without a check. */
export function compareClaims(cluster: AuditedCluster): readonly ClaimDifference[] {
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
      .map(({ key, name }) => difference('vip-without-claim', key, `VpcIP ${name} names a claim that does not exist`)),
    ...vips.flatMap(({ key, name, nodeName, eniId }) => {
      if (nodeName === undefined || eniId === undefined) return [];
      if (cluster.enisOf(nodeName)?.has(eniId) === true) return [];
      const where = `${eniId} of node ${nodeName}`;
      return [difference('vip-of-vanished-node', key, `VpcIP ${name} is on ${where}, which does not exist`)];
    }),
    ...[...cluster.marks]
      .filter(({ key }) => !claims.has(key))
      .map(({ key, nodeName }) =>
        difference('mark-without-claim', key, `node ${nodeName} has an address for it, and there is no claim`),
      ),
  ];
}

/** Objects for static addresses beside claims; claims report their faults themselves. */
type ReadObjects = {
  readonly vips: Iterable<Pick<VipFacts, 'name' | 'podKey' | 'staticObject'>>;
  /** By `namespace/name`. */
  readonly configs: Iterable<readonly [key: string, config: StaticObject<StaticIpRule>]>;
};

/**
 * Finds the VpcIPs and StaticIPConfigs that cannot be read: they are neither changed nor applied. A StaticIPConfig whose
 * retention time is too short applies without it, and is listed too.
 */
export function listUnreadable({ vips, configs }: ReadObjects): readonly ClaimDifference[] {
  return [
    ...[...vips].flatMap(({ name, podKey, staticObject }): readonly ClaimDifference[] =>
      staticObject === undefined || staticObject.faults.length === 0
        ? []
        : [{ kind: 'vip-unreadable', key: podKey, object: { kind: 'VpcIP', name }, message: faultText(staticObject) }],
    ),
    ...[...configs].flatMap(([key, config]): readonly ClaimDifference[] => {
      const faults = [...config.faults, ...expiryFaultsOf(config.decoded)];
      if (faults.length === 0) return [];
      const object = { kind: 'StaticIPConfig', ...refOfKey(key) } as const;
      return [{ kind: 'config-unreadable', key: '', object, message: faultText({ faults }) }];
    }),
  ];
}

/** The schema of the kind accepts any duration. */
function expiryFaultsOf(config: StaticIpRule | undefined): readonly Fault[] {
  const text = config?.spec?.claimExpiredDuration;
  const faults = new Faults();
  if (text !== undefined) readClaimExpiry(text, 'spec.claimExpiredDuration', faults);
  return faults.list;
}

function faultText({ faults }: Pick<StaticObject<unknown>, 'faults'>): string {
  return faults.map(renderFault).join('; ');
}
