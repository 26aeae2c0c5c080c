import { POD_ANNOTATION } from '../../../crd/names.ts';
import { readClaimExpiry } from '../../../crd/pod-network-request.ts';
import type { StaticIpRule } from '../../../crd/select-static-ip-config.ts';
import { Faults, renderFault } from '../../../runtime/decode.ts';
import { networkRequestOf, type PodFacts, type PodOwner, runtimeUidOf } from '../../cache/pod-facts.ts';
import { isIpv4 } from '../../decide/with-enis.ts';
import type { ClaimPod, ClaimRule } from './claim-view.ts';

/**
 * Derives the settings of a Pod's claim. Undefined for a Pod without a claim: it has no static address, and no
 * exclusive ENI with its own security groups. Annotations take precedence over the StaticIPConfig that selects the Pod.
 */
export function readClaimPod(
  pod: PodFacts,
  config: Pick<StaticIpRule, 'spec'> | undefined,
  workload: PodOwner | undefined,
): ClaimPod | undefined {
  const { claimInfo } = pod;
  if (claimInfo === undefined) return undefined;
  const { request, faults } = networkRequestOf(pod);
  const { mode, labels, labelCount } = claimInfo;
  const isPrepared = mode === 'direct-eni' && request.securityGroupIds !== undefined;
  if (!request.isStatic && !isPrepared) return undefined;
  const ofLabels = labelCount === undefined ? [] : [{ ...TOO_MANY_LABELS, got: String(labelCount) }];
  const faultTexts = [...ofLabels, ...faults].map(renderFault);
  const uid = runtimeUidOf(pod);
  const allocation = pod.annotations[POD_ANNOTATION.vpcIpAllocation];
  const ip = pod.ips.find(isIpv4) ?? pod.ips[0];
  return {
    uid,
    nodeName: pod.nodeName,
    labels,
    ...(ip === undefined ? {} : { ip }),
    ...(allocation === undefined ? {} : { allocation }),
    ...(uid === pod.uid ? {} : { apiUid: pod.uid }),
    rule: { ...ruleOf(), ...configured(), faults: faultTexts },
  };

  function ruleOf(): Omit<ClaimRule, 'faults'> {
    const { claimExpiredMs, nominatedIp, nominatedSubnetIds, securityGroupIds } = request;
    return {
      mode,
      isStatic: request.isStatic,
      ...(claimExpiredMs === undefined ? {} : { expiredMs: claimExpiredMs }),
      ...(nominatedIp === undefined || mode === 'direct-eni' ? {} : { nominatedIp }),
      ...(nominatedSubnetIds === undefined ? {} : { subnetIds: nominatedSubnetIds }),
      ...(securityGroupIds === undefined ? {} : { securityGroupIds }),
      ...(workload === undefined || !request.isStatic ? {} : { workload }),
    };
  }

  function configured(): Partial<ClaimRule> {
    if (!request.isStatic) return {};
    const { claimExpiredDuration, subnetIDs, ips } = config?.spec ?? {};
    const expiredMs = claimExpiredDuration === undefined ? undefined : readDurationMs(claimExpiredDuration);
    const hasOwnIp = request.nominatedIp !== undefined || mode === 'direct-eni';
    return {
      ...(request.claimExpiredMs !== undefined || expiredMs === undefined ? {} : { expiredMs }),
      ...(request.nominatedSubnetIds !== undefined || subnetIDs === undefined || subnetIDs.length === 0
        ? {}
        : { subnetIds: subnetIDs }),
      ...(hasOwnIp || ips === undefined || ips.length === 0 ? {} : { pool: ips }),
    };
  }
}

const TOO_MANY_LABELS = {
  path: 'metadata.labels',
  expected: 'at most 32 KiB of labels; no StaticIPConfig applies to the Pod, and no Deployment is found for it',
};

/** Reads a retention time; undefined for an invalid one. */
export function readDurationMs(text: string): number | undefined {
  return readClaimExpiry(text, '', new Faults());
}

/** Renders a retention time in the format of Go. */
export function renderDurationMs(ms: number): string {
  return ms % SECOND_MS === 0 ? `${ms / SECOND_MS}s` : `${ms}ms`;
}

const SECOND_MS = 1_000;
