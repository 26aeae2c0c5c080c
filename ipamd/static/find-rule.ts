import { readClaimExpiry } from '../../crd/pod-wishes.ts';
import type { StaticIpConfig } from '../../crd/static-ip-config.ts';
import { Faults } from '../../runtime/decode.ts';
import { type PodFacts, type PodOwner, runtimeUidOf, wishesOf } from '../records/pod-facts.ts';
import type { ClaimPod, ClaimRule } from './claim-view.ts';

/**
 * Derives the settings of a Pod's claim. Undefined for a Pod without a claim: it has no static address, and no
 * exclusive ENI with its own security groups. Annotations take precedence over the StaticIPConfig that selects the Pod.
 */
export function findClaimPod(
  pod: PodFacts,
  config: StaticIpConfig | undefined,
  workload: PodOwner | undefined,
): ClaimPod | undefined {
  const { lasting } = pod;
  if (lasting === undefined) return undefined;
  const { wishes, faults } = wishesOf(pod);
  const { mode, labels } = lasting;
  const isPrepared = mode === 'direct-eni' && wishes.securityGroupIds !== undefined;
  if (!wishes.isStatic && !isPrepared) return undefined;
  const said = faults.map(({ path, expected, got }) => `${path}: expected ${expected}, got ${got}`);
  const uid = runtimeUidOf(pod);
  return { uid, nodeName: pod.nodeName, labels, rule: { ...ruleOf(), ...configured(), faults: said } };

  function ruleOf(): Omit<ClaimRule, 'faults'> {
    const { claimExpiredMs, nominatedIp, nominatedSubnetIds, securityGroupIds } = wishes;
    return {
      mode,
      isKept: wishes.isStatic,
      ...(claimExpiredMs === undefined ? {} : { expiredMs: claimExpiredMs }),
      ...(nominatedIp === undefined || mode === 'direct-eni' ? {} : { nominatedIp }),
      ...(nominatedSubnetIds === undefined ? {} : { subnetIds: nominatedSubnetIds }),
      ...(securityGroupIds === undefined ? {} : { securityGroupIds }),
      ...(workload === undefined || !wishes.isStatic ? {} : { workload }),
    };
  }

  function configured(): Partial<ClaimRule> {
    if (!wishes.isStatic) return {};
    const { claimExpiredDuration, subnetIDs, ips } = config?.spec ?? {};
    const expiredMs = claimExpiredDuration === undefined ? undefined : readDurationMs(claimExpiredDuration);
    const hasOwnIp = wishes.nominatedIp !== undefined || mode === 'direct-eni';
    return {
      ...(wishes.claimExpiredMs !== undefined || expiredMs === undefined ? {} : { expiredMs }),
      ...(wishes.nominatedSubnetIds !== undefined || subnetIDs === undefined || subnetIDs.length === 0
        ? {}
        : { subnetIds: subnetIDs }),
      ...(hasOwnIp || ips === undefined || ips.length === 0 ? {} : { pool: ips }),
    };
  }
}

/** Reads a retention time; undefined for an invalid one. */
export function readDurationMs(text: string): number | undefined {
  return readClaimExpiry(text, '', new Faults());
}

/** Renders a retention time in the format of Go. */
export function renderDurationMs(ms: number): string {
  return ms % SECOND_MS === 0 ? `${ms / SECOND_MS}s` : `${ms}ms`;
}

const SECOND_MS = 1_000;
